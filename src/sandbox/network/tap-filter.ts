/**
 * Which packets a tap is shown, as programs that the kernel runs. Pure.
 *
 * Guarantees: what can be no denial never takes room in a tap's buffer: segments that open no connection, a program
 * talking to itself over loopback, and what the call's own listeners answer. Everything else is shown.
 */
import type { NetworkChannelSpec } from "../backend.ts"
import { assemble, type Instruction, jump, statement } from "../../linux/classic-bpf.ts"
import { TAPS } from "./limits.ts"

const [loadWord, loadByte, loadHeaderLength, loadByteBehind, loadHalfBehind, loadHalf] = [
  0x20, 0x30, 0xb1, 0x50, 0x48, 0x28,
]
const [and, isEqual, answer] = [0x54, 0x15, 0x06]
/** Offsets from here on count from the network header, which an IPv6 tap is not shown. */
const NETWORK_HEADER = 0xfff00000
const [SYN, SYN_ACK] = [0x02, 0x12]
const DNS = 53

const show = statement(answer, 0xffff)
const skip = statement(answer, 0)
const skipUnless = (code: number, value: number): Instruction[] => [jump(code, value, 1, 0), skip]
const skipIf = (value: number): Instruction[] => [jump(isEqual, value, 0, 1), skip]

type Transport = "tcp" | "udp"

/** An IPv4 tap sees the packet from its header on. */
export const filterV4 = (transport: Transport, network: NetworkChannelSpec | "none"): Buffer => {
  const served = network === "none" || transport === "udp" ? [] : network.transparentPorts.slice(0, TAPS.filteredPorts)
  const names = transport === "udp" && (network === "none" || !network.dns)
  const opens =
    transport === "tcp" ? [statement(loadByteBehind, 13), statement(and, SYN_ACK), ...skipUnless(isEqual, SYN)] : []
  const toLoopback = names ? [statement(loadHalfBehind, 2), ...skipUnless(isEqual, DNS), show] : [skip]
  return assemble([
    statement(loadHeaderLength, 0),
    ...opens,
    statement(loadByte, 16),
    jump(isEqual, 127, 0, toLoopback.length),
    ...toLoopback,
    statement(loadHalfBehind, 2),
    ...served.flatMap(skipIf),
    show,
  ])
}

/** An IPv6 tap sees what is behind the header; nobody listens on IPv6. */
export const filterV6 = (transport: Transport): Buffer => {
  const opens =
    transport === "tcp" ? [statement(loadByte, 13), statement(and, SYN_ACK), ...skipUnless(isEqual, SYN)] : []
  const toLoopback = transport === "udp" ? [statement(loadHalf, 2), ...skipUnless(isEqual, DNS), show] : [skip]
  const words = [0, 0, 0, 1].map((value, index) => ({ value, at: NETWORK_HEADER + 24 + 4 * index }))
  // Each word that differs from ::1 leads past the rest to the end, where everything is shown.
  const compared = words.flatMap(({ value, at }, index) => [
    statement(loadWord, at),
    jump(isEqual, value, 0, 2 * (words.length - 1 - index) + toLoopback.length),
  ])
  return assemble([...opens, ...compared, ...toLoopback, show])
}
