#!/usr/bin/env bash
# Runs a statically linked program on an emulated Ice Lake processor, for machines without AVX-512:
#
#   run-avx512.sh PROGRAM [ARGUMENT]...
#
# Standard output and exit code are PROGRAM's; standard error is the console of the emulated machine, which
# has PROGRAM's too. Exit code 125: the emulation failed, or took too long.
#
# Bochs boots a Debian kernel from a CD whose initial file system holds PROGRAM and test/fixtures, under the
# paths that they have here. The serial ports are files: COM1 the console, COM2 PROGRAM's standard output.
#
# scripts/test/avx512.mjs names the Debian packages. The kernel is downloaded, not installed: its image is in
# build/avx512-kernel then.
set -euo pipefail

time_limit=1800 # seconds; an idle machine takes a few minutes
repository=$(cd "$(dirname "$0")/../../.." && pwd)
program=$(realpath "$1")
shift

fail() {
  echo "run-avx512.sh: $*" >&2
  exit 125
}

scratch=$(mktemp -d)
emulator=
clean_up() {
  if [[ -n $emulator ]]; then { kill "$emulator" && wait "$emulator"; } 2>/dev/null || true; fi
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 143' INT TERM

# ---- the kernel: the one for clouds has few drivers, and 6.1 boots twice as fast as 6.12

cache=$repository/build/avx512-kernel
mkdir -p "$cache"
find_kernel() {
  find /boot "$cache" -name 'vmlinuz-6.1.*-cloud-amd64' -readable | sort -V | tail -n 1
}

if [[ -z $(find_kernel) ]]; then
  package=$(apt-cache pkgnames linux-image-6.1. | grep -E '^linux-image-[0-9.-]+-cloud-amd64$' |
    sort -V | tail -n 1) || fail "no linux-image-6.1.*-cloud-amd64 (Debian 12); run apt-get update?"
  (
    cd "$scratch" &&
      timeout 300 apt-get -qq -o APT::Sandbox::User=root download "$package" &&
      dpkg-deb -x "$package"_*.deb package &&
      mv package/boot/vmlinuz-* "$cache/"
  ) >&2 || fail "$package could not be downloaded; run apt-get update?"
fi

# ---- the initial file system

guest=$scratch/guest
mkdir -p "$guest"/{bin,dev,proc} "$guest$(dirname "$program")" "$guest$repository/test"
cp /bin/busybox "$guest/bin/"
cp "$program" "$guest$program"
cp -R "$repository/test/fixtures" "$guest$repository/test/"

# The program has a shell of its own so that "Segmentation fault" precedes its status, and that the ports are
# closed then, which waits until everything is transmitted.
status_line="exit code of the program: "
cat >"$guest/init" <<INIT
#!/bin/busybox sh
busybox mount -t devtmpfs none /dev
busybox mount -t proc none /proc
for port in /dev/ttyS0 /dev/ttyS1; do busybox stty -F \$port raw -echo; done
($(printf '%q ' "$program" "$@")) </dev/null >/dev/ttyS1 2>/dev/ttyS0
echo "$status_line\$?" >/dev/ttyS0
busybox poweroff -f
INIT
chmod +x "$guest/init"

# ---- the CD

mkdir "$scratch/cd"
(cd "$guest" && busybox find . | busybox cpio -o -H newc 2>/dev/null) >"$scratch/cd/initrd"
cp "$(find_kernel)" "$scratch/cd/vmlinuz"
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$scratch/cd/"

# Linux must do without some features that Bochs announces:
#   fsrm            Bochs turns fast string instructions off: with this but without them, memmove is wrong.
#   pku             Bochs 2.7 gives its register no room in what XSAVE writes,
#   xsavec, xsaves  and their compact form is shorter than announced: Linux would use neither XSAVE nor AVX.
# After a panic, reboot=t makes the processor fault and Bochs end. The cryptographic self-tests would take as
# long as the rest of the boot.
cat >"$scratch/cd/isolinux.cfg" <<'ISOLINUX'
DEFAULT linux
LABEL linux
  KERNEL vmlinuz
  INITRD initrd
  APPEND console=ttyS0,115200 loglevel=1 panic=-1 reboot=t clearcpuid=fsrm,pku,xsavec,xsaves cryptomgr.notests
ISOLINUX
xorriso -as mkisofs -quiet -o "$scratch/cd.iso" -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 \
  -boot-info-table "$scratch/cd" 2>"$scratch/xorriso.log" || fail "$(<"$scratch/xorriso.log")"

# ---- the emulator

cat >"$scratch/bochsrc" <<BOCHS
display_library: term
cpu: model=corei7_icelake_u, ips=100000000, reset_on_triple_fault=0
memory: guest=512, host=512
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path=$scratch/cd.iso, status=inserted
boot: cdrom
clock: sync=none
com1: enabled=1, mode=file, dev=$scratch/console
com2: enabled=1, mode=file, dev=$scratch/stdout
speaker: enabled=0
log: $scratch/bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
BOCHS
echo continue >"$scratch/debugger-commands" # Debian's Bochs has a debugger, which starts it stopped.
touch "$scratch/console" "$scratch/stdout"
# Bochs ignores SIGTERM, hence the second signal a second later.
start_emulator() {
  TERM=vt100 timeout --kill-after=1 "$time_limit" bochs-bin -q -f "$scratch/bochsrc" \
    -rc "$scratch/debugger-commands" </dev/null >"$scratch/bochs.out" 2>&1 &
  emulator=$!
}
start_emulator
# Now and then the machine does not start. It takes half a minute, if others are at work two.
for ((waited = 0; waited < 300; waited++)); do
  if [[ -s $scratch/stdout ]] || ! kill -0 "$emulator" 2>/dev/null; then break; fi
  sleep 1
done
if [[ ! -s $scratch/stdout ]] && kill "$emulator" 2>/dev/null; then
  wait "$emulator" || true
  start_emulator
fi

tail -n +1 -s 0.2 -f --pid="$emulator" "$scratch/stdout" &
tail -n +1 -s 0.2 -f --pid="$emulator" "$scratch/console" | sed -u "s/\r\$//; /^$status_line/,\$d" >&2 &
wait 2>/dev/null || true
emulator=

# Bochs itself ends with 1 when the machine is switched off.
status=$(sed -n "s/^$status_line\([0-9]*\).*/\1/p" "$scratch/console")
if [[ -z $status ]]; then
  tail -n 20 "$scratch/bochs.log" "$scratch/bochs.out" >&2
  fail "the program did not end (time limit: $time_limit seconds)"
fi
exit "$status"
