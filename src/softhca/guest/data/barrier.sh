#!/bin/bash
# softhca-barrier [-t SECONDS] [NAME]: waits until every other guest of the run has called it too, with the same NAME.
# It asks the process that runs the guests, over a port of its own: "wait ID NAME" is answered with "ok ID" or
# "fail ID WHY"; "leave ID" takes the question back, and is answered if that question was not answered yet.
usage="usage: softhca-barrier [-t SECONDS] [NAME]   (NAME: at most 64 of A-Z a-z 0-9 _ . -)"
fail() { echo "softhca-barrier: $2" >&2; exit "$1"; }
seconds=
while getopts t:h option; do
    case $option in
        t) seconds=$OPTARG ;;
        h) echo "$usage"; exit 0 ;;
        *) echo "$usage" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[[ $# -le 1 && ${1-} =~ ^[A-Za-z0-9_.-]{0,64}$ ]] || { echo "$usage" >&2; exit 2; }
[[ -z $seconds || ($seconds =~ ^[0-9]+(\.[0-9]+)?$ && $seconds =~ [1-9]) ]] || { echo "$usage" >&2; exit 2; }

for port in /sys/class/virtio-ports/*; do
    [ -e "$port/name" ] && [ "$(<"$port/name")" = softhca.barrier ] && break
done
[ -e "$port/name" ] || fail 1 "this guest has no port to the others"
exec 8>/run/softhca-barrier.lock
flock 8  # the port can be opened once only; a second call in this guest waits for the next meeting
exec 9<>"/dev/${port##*/}" || fail 1 "cannot open /dev/${port##*/}"
id=$$.$EPOCHREALTIME
trap 'echo "leave $id" >&9; exit 143' TERM
trap 'echo "leave $id" >&9; exit 130' INT
echo "wait $id ${1-}" >&9
late=
while :; do
    if ! read -r ${seconds:+-t "$seconds"} word asked why <&9; then
        [ -z "$late" ] || fail 1 "the port to the others is dead"
        late=124 seconds=10
        echo "leave $id" >&9
        continue
    fi
    [ "$asked" = "$id" ] || continue
    [ "$word" = ok ] && exit 0
    fail "${late:-1}" "$why"
done
