#!/bin/sh
# inside.sh FOLDER COMMAND…: run it where what is unpacked in FOLDER lies over this machine's own files. Needs root; leaves nothing.
exec unshare -m sh -c '
  set -e
  mount --make-rprivate /
  mount -t tmpfs -o size=1g none /mnt
  mkdir /mnt/up /mnt/work /mnt/all /mnt/low
  cp -a "$1"/. /mnt/low/
  shift
  mount -t overlay none -o lowerdir=/mnt/low:/usr/..,upperdir=/mnt/up,workdir=/mnt/work /mnt/all
  for folder in proc dev tmp; do mount --rbind /$folder /mnt/all/$folder; done
  mount --rbind "$(dirname "$PWD")" "/mnt/all/$(dirname "$PWD")"
  here=$PWD
  exec chroot /mnt/all sh -c "cd \"$here\" && exec \"\$@\"" sh "$@"
' sh "$@"
