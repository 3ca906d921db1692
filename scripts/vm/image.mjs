/**
 * The guest's disk: Debian with its own kernel, systemd and the programs that the tests run.
 *
 * Guarantees: built once per recipe below the cache folder and used from there; a build that was broken off leaves
 * nothing that counts as built. The guest has a user `tester` whose manager systemd keeps running, and one service,
 * which runs the plan on the second disk and switches the machine off.
 * Assumes: root, debootstrap, e2fsprogs, a Debian mirror (the machine's own apt sources name it).
 */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { mirrorOf } from "../apt-mirror.mjs"
import { say } from "../house.mjs"

const SUITE = "bookworm"
const PACKAGES = [
  ...["systemd", "systemd-sysv", "dbus", "dbus-user-session", "libpam-systemd", "udev", "kmod"],
  ...["linux-image-amd64", "user-mode-linux", "initramfs-tools", "zstd", "procps", "iproute2", "ca-certificates"],
  ...["bubblewrap", "jq", "git", "ripgrep", "sqlite3", "curl", "file", "patch", "python3", "perl"],
]
/** The guest's own files, by path. */
const FILES = {
  "etc/fstab": "LABEL=guest / ext4 rw,relatime 0 0\nLABEL=house /house ext4 rw,relatime 0 0\n",
  "etc/hostname": "guest\n",
  "etc/hosts": "127.0.0.1 localhost guest\n::1 localhost\n",
  // Only what the two disks need: unpacking everything takes an emulated machine half a minute.
  "etc/initramfs-tools/conf.d/caisson": "MODULES=list\nCOMPRESS=gzip\n",
  "etc/initramfs-tools/modules": "virtio_pci\nvirtio_blk\next4\ncrc32c_generic\n",
  // A starved machine may take minutes to find its second disk; where it cannot go on, it goes off.
  "etc/systemd/system.conf.d/starved.conf":
    "[Manager]\nDefaultTimeoutStartSec=infinity\nDefaultDeviceTimeoutSec=infinity\n",
  "etc/systemd/system/emergency.service.d/off.conf":
    "[Service]\nExecStartPre=\nExecStart=\nExecStart=/bin/systemctl --force --force poweroff\n",
  "var/lib/systemd/linger/tester": "",
  "etc/systemd/system/caisson-tests.service": `[Unit]
After=systemd-user-sessions.service systemd-logind.service user@1000.service
Wants=user@1000.service
RequiresMountsFor=/house
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=/bin/sh /house/scripts/vm/guest.sh
StandardOutput=file:/dev/ttyS1
StandardError=file:/dev/ttyS1
`,
}
const SETUP = `
useradd --create-home --uid 1000 --shell /bin/sh tester
systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer man-db.timer \\
  getty@tty1.service serial-getty@ttyS0.service serial-getty@ttyS1.service systemd-timesyncd.service
for modules in /usr/lib/uml/modules/*; do ln -s "$modules" /lib/modules/; done
mkdir -p /house /etc/systemd/system/multi-user.target.wants
ln -sf ../caisson-tests.service /etc/systemd/system/multi-user.target.wants/
update-initramfs -u -k all
rm -rf /var/cache/apt/archives /var/lib/apt/lists /usr/share/doc /usr/share/man /usr/share/locale
`

const recipe = createHash("sha256")
  .update(JSON.stringify([SUITE, PACKAGES, FILES, SETUP]))
  .digest("hex")
  .slice(0, 16)

export const cacheFolder = () => join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "caisson", "vm")

/** Runs a program with its output on stderr. @param {string} program @param {string[]} args */
export const run = (program, args) => {
  const done = spawnSync(program, args, { stdio: ["ignore", 2, 2], env: { ...process.env, LC_ALL: "C.UTF-8" } })
  if (done.status !== 0)
    throw new Error(
      `${program} ${done.error ? `cannot be started: ${done.error.message}` : `ended with ${done.status ?? done.signal}`}`,
    )
}

/** An ext4 image of a folder. @param {string} folder @param {string} file @param {{ label: string, size: string }} shape */
export const makeDisk = (folder, file, { label, size }) =>
  run("mkfs.ext4", [
    "-q",
    "-F",
    "-L",
    label,
    "-O",
    "^has_journal",
    "-E",
    "lazy_itable_init=1",
    "-d",
    folder,
    file,
    size,
  ])

/** @returns {{ disk: string, kernel: string, initrd: string }} */
export const guestImage = () => {
  const folder = join(cacheFolder(), recipe)
  const image = {
    disk: join(folder, "disk.img"),
    kernel: join(folder, "vmlinuz"),
    initrd: join(folder, "initrd"),
    uml: join(folder, "linux.uml"),
  }
  if (existsSync(folder)) return image
  say(`vm: building the guest (${SUITE}, about two minutes); it is kept in ${folder}`)
  const building = `${folder}.building-${process.pid}`
  const root = join(building, "root")
  try {
    mkdirSync(building, { recursive: true })
    run("debootstrap", ["--variant=minbase", `--include=${PACKAGES.join(",")}`, SUITE, root, mirrorOf(SUITE)])
    for (const [path, text] of Object.entries(FILES)) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    }
    run("chroot", [root, "/bin/sh", "-ec", SETUP])
    const boot = readdirSync(join(root, "boot"))
    for (const [name, to] of [
      ["vmlinuz-", "vmlinuz"],
      ["initrd.img-", "initrd"],
    ])
      copyFileSync(join(root, "boot", boot.find((file) => file.startsWith(name)) ?? name), join(building, to))
    copyFileSync(join(root, "usr/bin/linux.uml"), join(building, "linux.uml"))
    makeDisk(root, join(building, "disk.img"), { label: "guest", size: "6G" })
    rmSync(root, { recursive: true })
    renameSync(building, folder)
  } finally {
    rmSync(building, { recursive: true, force: true })
  }
  return image
}
