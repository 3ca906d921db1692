import { describe, expect, it } from "vitest"
import { containerOptions, type ContainerPlan } from "../../../../src/sandbox/docker/container/container-spec.ts"
import { seccompProfile } from "../../../../src/sandbox/docker/container/seccomp-json.ts"
import { shapeOf } from "../../../../src/sandbox/profile.ts"
import { profileOf } from "../support.ts"

const plan: ContainerPlan = {
  product: "docker",
  image: "sha256:0",
  perl: ["/run/caisson/code/perl"],
  name: "caisson-1-2-3-4",
  labels: { "dev.caisson.host": "1-2-3" },
  user: 1_879_048_191,
  architecture: "x64",
  seccomp: JSON.stringify(seccompProfile("x64")),
  usernsRemap: false,
  places: {
    bridge: "/g/bridge",
    workspace: "/g/ws",
    home: "/g/home",
    tmp: "/g/tmp",
    shm: "/g/shm",
    root: { "/usr": "/g/root/usr" },
  },
}
const options = containerOptions(
  shapeOf(
    profileOf({
      env: { SECRET: "s3cret" },
      limits: { pids: 10, memoryBytes: 1000, diskBytes: 24, cpus: 0.5, openFiles: 33 },
    }),
  ),
  plan,
)
const host = options.HostConfig ?? {}

describe("a container's settings", () => {
  it("have every control on", () => {
    expect(host).toMatchObject({
      NetworkMode: "none",
      ReadonlyRootfs: true,
      CapDrop: ["ALL"],
      IpcMode: "private",
      CgroupnsMode: "private",
      LogConfig: { Type: "none" },
      Memory: 1000,
      MemorySwap: 1000,
      NanoCpus: 5e8,
    })
    expect(host.SecurityOpt).toEqual([
      "no-new-privileges",
      expect.stringMatching(/^seccomp=\{"defaultAction"/) as string,
    ])
    expect(host.CapAdd).toBeUndefined()
    expect(host.Privileged).toBeUndefined()
    expect(options.User).toBe("1879048191:1879048191")
  })
  it("count the bridge beside the tool's processes", () => {
    expect(host.PidsLimit).toBe(11)
  })
  it("bound descriptors and forbid core dumps", () => {
    expect(host.Ulimits).toEqual(
      expect.arrayContaining([
        { Name: "nofile", Soft: 33, Hard: 33 },
        { Name: "core", Soft: 1, Hard: 1 },
      ]),
    )
  })
  it("mount everything read-only, and late what the call brings", () => {
    const mounts = host.Mounts ?? []
    expect(mounts.every((mount) => mount.ReadOnly === true)).toBe(true)
    const late = mounts.filter((mount) => mount.BindOptions?.Propagation === "rslave").map((mount) => mount.Target)
    expect(late.sort()).toEqual(["/dev/shm", "/home/tool", "/run/caisson", "/tmp", "/workspace"])
  })
  it("say the same to Podman in the words that it understands", () => {
    const { Binds, Mounts } = containerOptions(shapeOf(profileOf()), { ...plan, product: "podman" }).HostConfig ?? {}
    expect(Mounts).toBeUndefined()
    expect(Binds).toContain("/g/ws:/workspace:ro,rbind,rslave")
    expect(Binds).toContain("/g/root/usr:/usr:ro,rbind,rprivate")
  })
  it("attach no stream and hold nothing of the call", () => {
    expect(options).toMatchObject({
      AttachStdin: false,
      AttachStdout: false,
      AttachStderr: false,
      OpenStdin: false,
      Tty: false,
      Env: [],
    })
    expect(JSON.stringify(options)).not.toContain("s3cret")
  })
  it("opt out of remapped users, whose numbers would not fit the layers", () => {
    expect(host.UsernsMode).toBeUndefined()
    expect(containerOptions(shapeOf(profileOf()), { ...plan, usernsRemap: true }).HostConfig?.UsernsMode).toBe("host")
  })
})
