/**
 * One machine, from power-on to power-off: `uml`, Linux as a program (User-Mode Linux), or `qemu`, an emulated one with
 * Debian's own kernel. Both boot the same disks.
 *
 * Guarantees: the machine ends with this process (the kernel sees to it) or at the deadline; both disks stay as they are,
 * since what the guest writes goes elsewhere. Neither needs KVM: they run everywhere, and their slowness finds waits
 * that assume a fast machine.
 * Does not: give the guest a network.
 *
 * Why two: under UML programs run on the real processor and only system calls and page faults cost more, so that Node
 * starts ten times slower than usual and runs as quickly; under software emulation all is twenty times slower. UML's is
 * the same kernel (6.1) with one processor and without what x86 alone has, built by Debian but not Debian's usual one.
 */
import { spawn } from "node:child_process"
import { closeSync, openSync, statfsSync } from "node:fs"
import { createInterface } from "node:readline"

/**
 * @typedef {{ disk: string, kernel: string, initrd: string, uml: string }} Image
 * @typedef {{ house: string, folder: string, console: string, cpus: number, memoryMiB: number, deadlineMs: number }} Options
 */

/** What the kernel is told in both: where it writes little, and that it goes off if it panics. */
const KERNEL = "rw quiet systemd.show_status=false panic=-1"

/**
 * For a machine that gets little of the real one: the kernel does not judge the timer by how many ticks came while it
 * looked (it would panic as it boots), nor itself as hung; it does not guard against processors that guess.
 */
const STARVED = "no_timer_check nowatchdog mitigations=off"

/**
 * Without what costs an emulated processor most: `rep movsb`, with which the kernel and libc copy and clear memory where a
 * processor says that it is quick at it, goes byte by byte; page tables have a fifth level; each use of memory keys or of
 * guarded user memory throws translations away. Nor with virtualization, for which a driver is loaded.
 */
const PROCESSOR = "max,-erms,-la57,-pku,-smap,-svm"

/** @param {Image} image @param {Options} options */
const qemu = (image, options) => {
  const drive = (/** @type {string} */ file) => ["-drive", `file=${file},if=virtio,format=raw,cache=unsafe,snapshot=on`]
  return [
    "qemu-system-x86_64",
    // Nothing that the guest would only load drivers for.
    ...["-nodefaults", "-vga", "none", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", PROCESSOR],
    ...["-smp", String(options.cpus), "-m", String(options.memoryMiB)],
    ...["-kernel", image.kernel, "-initrd", image.initrd],
    ...["-append", `root=/dev/vda console=ttyS0 ${KERNEL} ${STARVED}`],
    ...drive(image.disk),
    ...drive(options.house),
    ...["-device", "virtio-rng-pci", "-nic", "none", "-display", "none", "-monitor", "none", "-no-reboot"],
    ...["-serial", "file:/dev/fd/3", "-serial", "stdio"],
  ]
}

/**
 * Each program of the guest is a process here, which a UML that is killed would leave behind: so they have a process
 * namespace that ends with it. The security module is the one that Debian's kernel has too, of those that need no policy.
 * @param {Image} image @param {Options} options
 */
const uml = (image, options) => [
  ...["unshare", "--pid", "--kill-child", "--"],
  image.uml,
  `mem=${options.memoryMiB}M`,
  `uml_dir=${options.folder}/uml/`,
  `ubd0=${options.folder}/disk.cow,${image.disk}`,
  `ubd1=${options.folder}/house.cow,${options.house}`,
  ...["con=null", "con0=null,fd:3", "ssl=null", "ssl1=null,fd:1"],
  ...`root=/dev/ubda lsm=capability,yama ${KERNEL}`.split(" "),
]

/** UML keeps the guest's memory in a file, which belongs in memory if there is room. @param {Options} options */
const memoryFolder = (options) => {
  const { bavail, bsize } = statfsSync("/dev/shm")
  return bavail * bsize > options.memoryMiB * 1024 * 1024 ? "/dev/shm" : options.folder
}

export const machines = { uml, qemu }
/** @typedef {keyof typeof machines} Kind */

/**
 * @param {Kind} kind
 * @param {Image} image
 * @param {Options} options `folder`: where the machine may leave files; `console`: the file for the kernel's own words
 * @param {(line: string) => void} heard each line that the guest writes to its second serial line
 * @returns {Promise<string | undefined>} why it ended before its time, if so
 */
export const boot = (kind, image, options, heard) =>
  new Promise((resolve) => {
    const command = machines[kind](image, options)
    const words = openSync(options.console, "a")
    const child = spawn("/usr/bin/setpriv", ["--pdeathsig", "KILL", ...command], {
      stdio: ["ignore", "pipe", "inherit", words],
      env: { ...process.env, TMPDIR: memoryFolder(options) },
    })
    closeSync(words)
    let trouble
    const deadline = setTimeout(() => {
      trouble = `the machine was still running after ${Math.round(options.deadlineMs / 60_000)} minutes`
      child.kill("SIGKILL")
    }, options.deadlineMs)
    createInterface({ input: child.stdout }).on("line", (line) => heard(line.replace(/\r$/, "")))
    child.once("error", (error) => resolve(`${kind} cannot be started: ${error.message}`))
    child.once("close", (code, signal) => {
      clearTimeout(deadline)
      resolve(trouble ?? (code === 0 ? undefined : `${kind} ended with ${code ?? signal}`))
    })
  })
