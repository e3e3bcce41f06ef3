# What guest_matrix.py lets a guest do with its card; sourced by each of its scripts.
driver=/sys/bus/pci/drivers/mlx5_core
state=/sys/class/infiniband/mlx5_0/ports/1/state

find_card() {
    local path
    card=
    for path in /sys/bus/pci/devices/*; do
        [ "$(<"$path/vendor")" != 0x15b3 ] || card=${path##*/}
    done
}
find_card

# Wait for a card that is being plugged in.
found() {
    local round
    for round in $(seq 200); do
        find_card
        [ -z "$card" ] || return 0
        sleep 0.05
    done
    echo "no card comes"
    return 1
}

bound() { [ -e "$driver/$card" ]; }

load() { modprobe -a mlx5_core mlx5_ib && bound; }

# Bind the driver; fails when its probe does.
bind() { echo "$card" 2>/dev/null >"$driver/bind"; }

unbind() { ! bound || echo "$card" >"$driver/unbind"; }

# Wait until the port is up, as sysfs and rdma show it.
active() { # [SECONDS]
    local end=$((SECONDS + ${1:-15})) now
    while :; do
        now="no device"
        [ ! -e "$state" ] || now=$(cat "$state" 2>&1)
        [ "$now" != "4: ACTIVE" ] || break
        [ "$SECONDS" -lt "$end" ] || { echo "the port does not come up: $now"; return 1; }
        sleep 0.05
    done
    rdma link show | grep -q "state ACTIVE" || { echo "rdma link: $(rdma link show)"; return 1; }
}

log_lines=$(dmesg | wc -l)

# Wait until the kernel says something, since this script began; TEXT is an extended regular expression.
says() { # TEXT [UNLESS]
    local round
    for round in $(seq 600); do
        ! dmesg | tail -n "+$((log_lines + 1))" | grep -Eq "${2:-^$}" || break
        ! dmesg | tail -n "+$((log_lines + 1))" | grep -Eq "$1" || return 0
        sleep 0.1
    done
    echo "no '$1': $(dmesg | tail -1)"
    return 1
}

noticed() { says "Fatal error 1 detected"; }

recovered() { says "health recovery succeeded" "health recovery failed"; }

# Move checked data between two processes over the card.
traffic() { bash guest_pingpong.sh -n 100 >/tmp/traffic 2>&1 || { tail -5 /tmp/traffic; return 1; }; }

# Start traffic that does not end by itself.
begin_traffic() {
    ib_write_bw -F -p 18600 -D 600 >/tmp/server 2>&1 </dev/null &
    local round
    for round in $(seq 200); do
        [ -z "$(ss -Hltn "sport = :18600")" ] || break
        sleep 0.05
    done
    ib_write_bw -F -p 18600 -D 600 127.0.0.1 >/tmp/client 2>&1 </dev/null &
    local before now
    before=$(packets)
    for round in $(seq 200); do
        now=$(packets)
        [ $((now - before)) -lt 1000 ] || return 0
        sleep 0.05
    done
    echo "no traffic: $(tail -3 /tmp/server /tmp/client)"
    return 1
}

packets() { cat "${state%/state}/counters/port_xmit_packets"; }

# End what begin_traffic started; programs whose device has gone must end too.
end_traffic() {
    pkill -9 ib_write_bw
    local round
    for round in $(seq 200); do
        pgrep ib_write_bw >/dev/null || return 0
        sleep 0.05
    done
    echo "ib_write_bw does not end: $(ps -o pid,stat,wchan,args -C ib_write_bw)"
    return 1
}
