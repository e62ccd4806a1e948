#!/bin/sh
# Copies what a pod's own containers need to use a borrowed GPU into the volume $1: the client libraries and the
# `sluice` command, and the loader and C library by which a check can run in an image that has neither.
set -eu
mkdir -p "$1/glibc"
cp -R /opt/sluice/bin /opt/sluice/lib "$1/"
loader=$(echo /lib*/ld-linux-*.so.*)
cp -L "${loader%% *}" "$1/glibc/loader"
for name in libc.so.6 libm.so.6 libgcc_s.so.1 libdl.so.2 libpthread.so.0; do
  cp -L /lib/*-linux-gnu/"$name" "$1/glibc/"
done
