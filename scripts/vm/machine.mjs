/**
 * One emulated machine, from power-on to power-off.
 *
 * Guarantees: qemu ends with this process (the kernel sees to it) or at the deadline; both disks stay as they are,
 * since what the guest writes goes to a file of qemu's own that has no name. Software emulation on purpose: it runs
 * everywhere, and its slowness finds waits that assume a fast machine.
 * Does not: give the guest a network.
 */
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"

/**
 * For a machine that gets little of the real one: the kernel does not judge the timer by how many ticks came while it
 * looked (it would panic as it boots), nor itself as hung; if it panics all the same, it goes off; it does not guard
 * against processors that guess.
 */
const STARVED = "no_timer_check nowatchdog panic=-1 mitigations=off"

/**
 * Without what costs an emulated processor most: `rep movsb`, with which the kernel and libc copy and clear memory where a
 * processor says that it is quick at it, goes byte by byte; page tables have a fifth level; each use of memory keys or of
 * guarded user memory throws translations away. Nor with virtualization, for which a driver is loaded.
 */
const PROCESSOR = "max,-erms,-la57,-pku,-smap,-svm"

/**
 * @param {{ disk: string, kernel: string, initrd: string }} image
 * @param {{ house: string, console: string, cpus: number, memoryMiB: number, deadlineMs: number }} options
 * @param {(line: string) => void} heard each line that the guest writes to its second serial line
 * @returns {Promise<string | undefined>} why it ended before its time, if so
 */
export const boot = (image, options, heard) =>
  new Promise((resolve) => {
    const drive = (/** @type {string} */ file) => [
      "-drive",
      `file=${file},if=virtio,format=raw,cache=unsafe,snapshot=on`,
    ]
    const arguments_ = [
      // Nothing that the guest would only load drivers for.
      ...["-nodefaults", "-vga", "none", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", PROCESSOR],
      ...["-smp", String(options.cpus), "-m", String(options.memoryMiB)],
      ...["-kernel", image.kernel, "-initrd", image.initrd],
      ...["-append", `root=/dev/vda rw console=ttyS0 quiet systemd.show_status=false ${STARVED}`],
      ...drive(image.disk),
      ...drive(options.house),
      ...["-device", "virtio-rng-pci", "-nic", "none", "-display", "none", "-monitor", "none", "-no-reboot"],
      ...["-serial", `file:${options.console}`, "-serial", "stdio"],
    ]
    const child = spawn("/usr/bin/setpriv", ["--pdeathsig", "KILL", "qemu-system-x86_64", ...arguments_], {
      stdio: ["ignore", "pipe", "inherit"],
    })
    let trouble
    const deadline = setTimeout(() => {
      trouble = `the machine was still running after ${Math.round(options.deadlineMs / 60_000)} minutes`
      child.kill("SIGKILL")
    }, options.deadlineMs)
    createInterface({ input: child.stdout }).on("line", (line) => heard(line.replace(/\r$/, "")))
    child.once("error", (error) => resolve(`qemu cannot be started: ${error.message}`))
    child.once("close", (code, signal) => {
      clearTimeout(deadline)
      resolve(trouble ?? (code === 0 ? undefined : `qemu ended with ${code ?? signal}`))
    })
  })
