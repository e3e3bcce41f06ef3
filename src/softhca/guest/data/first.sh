#!/bin/busybox sh
# Runs first in a guest: stacks a writable layer over the read-only images, then hands over to the agent.
# /dev/vda is the userland, /dev/vdb the kernel's modules.
bb=/bin/busybox
fail() { $bb echo "softhca: $*" >/dev/console; $bb poweroff -f; }
$bb mount -t devtmpfs devtmpfs /dev || fail "no devtmpfs"
$bb mount -t proc proc /proc || fail "no proc"
$bb mount -t sysfs sysfs /sys || fail "no sysfs"
for module in /modules/*; do
    $bb insmod "$module" || fail "insmod $module"
done
$bb mkdir -p /mnt/userland /mnt/modules /mnt/upper /mnt/root
$bb mount -t erofs -o ro /dev/vda /mnt/userland || fail "no userland image"
$bb mount -t erofs -o ro /dev/vdb /mnt/modules || fail "no modules image"
$bb mount -t tmpfs -o size=75% upper /mnt/upper || fail "no tmpfs"
$bb mkdir /mnt/upper/data /mnt/upper/work
layers=lowerdir=/mnt/modules:/mnt/userland,upperdir=/mnt/upper/data,workdir=/mnt/upper/work
$bb mount -t overlay -o "$layers" root /mnt/root || fail "no overlay"
$bb mount --move /dev /mnt/root/dev
$bb mount --move /proc /mnt/root/proc
$bb mount --move /sys /mnt/root/sys
$bb mount -t tmpfs -o mode=755 run /mnt/root/run
$bb cp /agent /mnt/root/run/agent
$bb mkdir -p /mnt/root/usr/local/bin
$bb cp /softhca-barrier /mnt/root/usr/local/bin/
exec $bb switch_root /mnt/root /bin/bash /run/agent
