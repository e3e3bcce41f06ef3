#!/bin/bash
# The guest's side of the lab: process 1 of the guest. It takes requests, one a line with base64 words, from a
# virtio-serial port and answers there; what a command prints goes out on two further ports, kernel messages on another.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
# BlueFlame spares a real card a read of the WQE. A virtual machine passes each of its 8-byte stores on by itself: libmlx5
# would send eight messages for a doorbell. MLX5_SHUT_UP_BF=0 brings it back.
export MLX5_SHUT_UP_BF=1
shopt -s nullglob
work=/root/work
mkdir -p /dev/pts /dev/shm "$work"
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
mount -t configfs configfs /sys/kernel/config 2>/dev/null
ln -sfn /proc/self/fd /dev/fd
ln -sfn /proc/self/fd/0 /dev/stdin
ln -sfn /proc/self/fd/1 /dev/stdout
ln -sfn /proc/self/fd/2 /dev/stderr
hostname softhca
ip link set lo up
echo 7 >/proc/sys/kernel/printk
ulimit -l unlimited
ulimit -c 0

for port in /sys/class/virtio-ports/*; do
    [ -e "$port/name" ] || continue  # a console
    case $(<"$port/name") in
        softhca.control) exec 3<>"/dev/${port##*/}" ;;
        softhca.input) exec 4<"/dev/${port##*/}" ;;
        softhca.output) exec 5>"/dev/${port##*/}" ;;
        softhca.error) exec 6>"/dev/${port##*/}" ;;
        softhca.kernel) exec 7>"/dev/${port##*/}" ;;
    esac
done
mkfifo /run/output /run/error

# /dev/kmsg ends with an error when messages were overwritten; the reader on the other side drops repeated ones.
while :; do cat /dev/kmsg; sleep 0.2; done >&7 3<&- 4<&- 5>&- 6>&- 2>/dev/null &

word() { base64 -d <<<"$1"; }

run() { # SCRIPT TOKEN
    local script status reader_o reader_e timer
    script=$(word "$1")
    cat /run/output >&5 3<&- 4<&- 6>&- 7>&- &
    reader_o=$!
    cat /run/error >&6 3<&- 4<&- 5>&- 7>&- &
    reader_e=$!
    (cd "$work" && exec setsid -w bash -c "$script" 3<&- 4<&- 5>&- 6>&- 7>&- </dev/null) >/run/output 2>/run/error
    status=$?
    # A process that the command left behind may hold its output open; what it printed so far was passed on.
    (sleep 1; kill "$reader_o" "$reader_e") 2>/dev/null &
    timer=$!
    wait "$reader_o" "$reader_e"
    kill "$timer" 2>/dev/null
    printf '\0end %s\0' "$2" >&5
    printf '\0end %s\0' "$2" >&6
    echo "<6>softhca: mark $2" >/dev/kmsg
    echo "done $status" >&3
}

put() { # NAME MODE SIZE
    local name
    name=$(word "$1")
    if head -c "$3" <&4 >"$work/$name" && chmod "$2" "$work/$name"; then
        echo "done 0" >&3
    else
        echo "done 1" >&3
    fi
}

get() { # NAME
    local name size
    name=$(word "$1")
    if size=$(cd "$work" && stat -L -c %s -- "$name" 2>/dev/null) && [ -f "$work/$name" -o -f "$name" ]; then
        echo "size $size" >&3
        (cd "$work" && head -c "$size" -- "$name" >&5)
    else
        echo "size -1" >&3
    fi
}

shell() { # ROWS COLUMNS TERM
    exec 8<>/dev/hvc0  # held open: the last one to close a terminal throws its input away
    stty rows "$1" cols "$2" sane <&8
    echo "shell" >&3
    (cd "$work" && TERM=$(word "$3") exec setsid -c -w bash -l 3<&- 4<&- 5>&- 6>&- 7>&- <&8 >&8 2>&8 8>&-)
    echo "done $?" >&3
    exec 8>&-
}

echo "ready $(uname -r)" >&3
while :; do
    # A read ends at once while nobody listens on the other side.
    if ! read -r request a b c <&3; then
        sleep 0.05
        continue
    fi
    case $request in
        run) run "$a" "$b" ;;
        put) put "$a" "$b" "$c" ;;
        get) get "$a" ;;
        shell) shell "$a" "$b" "$c" ;;
        export) export "$(word "$a")"; echo "done $?" >&3 ;;
        clock) date -s "@$a" >/dev/null; echo "done $?" >&3 ;;
        *) echo "done 127" >&3 ;;
    esac
done
