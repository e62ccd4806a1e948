#!/bin/sh
# The first program of a workspace's container. What never changes lies in the image, the home in its volume; this
# lays out what belongs to one run, and hands over.
# usage: start.sh COMMAND...   (Jupyter's server, see ../objects.ts)
set -eu
umask 077
mkdir -p /run/sluice/runtime /run/sluice/jupyter/runtime
cp -R /opt/sluice/kernels /run/sluice/jupyter/kernels
# A home that was never started from.
if [ ! -e /opt/sluice/packages/pyvenv.cfg ] && [ ! -e "$HOME/examples" ]; then
  cp -R /opt/sluice/examples "$HOME/examples"
  chmod -R u+w "$HOME/examples"
fi
# Programs other than Python find the CUDA libraries here; Python has a start-up hook of its own.
for libraries in /opt/sluice/environment/lib/python3.*/site-packages/sluice_gpu/lib; do
  if [ -d "$libraries" ]; then export LD_LIBRARY_PATH="$libraries"; fi
done
# No forwarder: a pod's network is its own.
exec /bin/sh /opt/sluice/init.sh /run/sluice/started /opt/sluice/overlay /opt/sluice/packages /datasets "" "$@"
