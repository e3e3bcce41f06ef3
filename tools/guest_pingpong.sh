#!/bin/bash
# Runs in a guest: the driver has bound, the port is active, and ibv_rc_pingpong moves checked data between two
# processes over the card. More arguments (-e, -s SIZE, ...) go to both of them.
set -e
port=18515

lspci -k | grep -A3 -i mellanox | tee /tmp/lspci
grep -q "Kernel driver in use: mlx5_core" /tmp/lspci
ibv_devinfo | tee /tmp/devinfo
grep -q "PORT_ACTIVE" /tmp/devinfo

timeout 60 ibv_rc_pingpong -c -p "$port" "$@" &
server=$!
for round in $(seq 200); do
    [ -n "$(ss -Hltn "sport = :$port")" ] && break
    kill -0 "$server"
    sleep 0.05
done
[ -n "$(ss -Hltn "sport = :$port")" ]
timeout 60 ibv_rc_pingpong -c -p "$port" "$@" 127.0.0.1
wait "$server"
