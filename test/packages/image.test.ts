import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findFreePort } from "../support/free-port.ts";
import { baseImage, npmCache } from "./base-image.ts";
import { need, root, run, tryRun } from "./tools.ts";

const IMAGE = "localhost/parley-test:built";
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

interface ImageConfig {
  readonly config: {
    readonly User: string;
    readonly Env: readonly string[];
    readonly Entrypoint: readonly string[];
    readonly Healthcheck: { readonly Test: readonly string[] };
    readonly Labels: Readonly<Record<string, string>>;
  };
}

let container: string;
/** The root file system of a container. */
let files: string;
let image: ImageConfig["config"];

beforeAll(() => {
  if (process.getuid?.() !== 0) throw new Error("these tests build an image, which needs root");
  need("buildah", "apt-get install buildah");
  need("bwrap", "apt-get install bubblewrap");
  // Without a container runtime: the steps run in a changed root.
  const build = ["build", "--isolation", "chroot", "--format", "docker", "--timestamp", "0", "--layers=false"];
  const from = ["--build-arg", `NODE_IMAGE=${baseImage()}`, "--build-arg", `VERSION=${version}`];
  mkdirSync(npmCache(), { recursive: true });
  run("buildah", [...build, ...from, "--volume", `${npmCache()}:/root/.npm`, "--tag", IMAGE, "."]);
  container = run("buildah", ["from", IMAGE]).trim();
  files = run("buildah", ["mount", container]).trim();
  image = (JSON.parse(run("buildah", ["inspect", "--type", "image", IMAGE])) as { Docker: ImageConfig }).Docker.config;
}, 900_000);
afterAll(() => {
  if (container !== undefined) tryRun("buildah", ["rm", container]);
  tryRun("buildah", ["rmi", "--force", IMAGE]);
});

/** Runs the image's program: read-only root, no capabilities, a user of its own, and the data folder. */
function sandbox(data: string, env: readonly string[]): string[] {
  const variables = [...image.Env, ...env].map((each) => /^(\w+)=(.*)$/.exec(each)!.slice(1));
  const settings = variables.flatMap(([name, value]) => ["--setenv", name!, value!]);
  const mounts = ["--ro-bind", files, "/", "--bind", data, "/var/lib/parley", "--proc", "/proc", "--dev", "/dev"];
  const rights = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--uid",
    "65532",
    "--gid",
    "65532",
    "--cap-drop",
    "ALL",
  ];
  return [...mounts, ...rights, "--as-pid-1", "--die-with-parent", "--chdir", "/etc/parley", "--clearenv", ...settings];
}

describe("the image", () => {
  it("has the program, the libraries that it loads, and no shell", () => {
    const paths = readdirSync(files, { recursive: true, encoding: "utf8" });
    const programs = paths.filter((path) => {
      const stat = statSync(join(files, path), { throwIfNoEntry: false });
      return stat?.isFile() === true && (stat.mode & 0o111) !== 0 && !/\.so[.\d]*$/.test(path);
    });
    expect(programs).toEqual(["usr/local/bin/parley"]);
    expect(existsSync(join(files, "usr/share/doc/parley/THIRD-PARTY-LICENSES.txt"))).toBe(true);
    expect(statSync(join(files, "var/lib/parley"))).toMatchObject({ uid: 65532, gid: 65532 });
  });

  it("lists what is in it, with Node and Debian's packages", () => {
    const { components } = JSON.parse(readFileSync(join(files, "usr/share/doc/parley/sbom.cdx.json"), "utf8")) as {
      components: readonly { readonly name: string; readonly purl?: string }[];
    };
    const names = components.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["node", "zod", "react", "libc6", "libstdc++6"]));
    expect(components.find(({ name }) => name === "libc6")?.purl).toMatch(/^pkg:deb\/debian\/libc6@2\./);
  });

  it("runs as a user without rights, and checks its health without a shell", () => {
    expect(image.User).toBe("65532:65532");
    expect(image.Entrypoint).toEqual(["/usr/local/bin/parley"]);
    expect(image.Healthcheck.Test).toEqual(["CMD", "/usr/local/bin/parley", "health"]);
    expect(image.Labels["org.opencontainers.image.version"]).toBe(version);
  });

  it("has the same program as a release of the same sources and Node", () => {
    run(process.execPath, ["scripts/run.mjs", "scripts/release.mjs"]);
    const digestOf = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex");
    const release = join(root, `dist/parley-${version}-linux-${process.arch}`);
    expect(digestOf(join(files, "usr/local/bin/parley"))).toBe(digestOf(release));
  }, 180_000);

  it("serves from a read-only root, survives SIGKILL, and drains on SIGTERM", async () => {
    const data = mkdtempSync(join(tmpdir(), "parley-image-"));
    const ports = [await findFreePort(), await findFreePort(), await findFreePort()];
    const listeners = ["HTTP", "GRPC", "OPERATIONS"].map(
      (name, index) => `PARLEY_${name}_LISTEN=0.0.0.0:${ports[index]}`,
    );
    const bwrap = sandbox(data, listeners);
    const start = () => spawn("bwrap", [...bwrap, ...image.Entrypoint, "serve"], { stdio: ["ignore", "pipe", "pipe"] });
    const isHealthy = (): boolean =>
      tryRun("bwrap", [...bwrap, ...image.Healthcheck.Test.slice(1), "--ready"]).status === 0;
    let sandboxed = start();
    try {
      await expect.poll(isHealthy, { timeout: 30_000 }).toBe(true);
      sandboxed.kill("SIGKILL");
      await once(sandboxed, "close");
      expect(isHealthy()).toBe(false);
      sandboxed = start();
      await expect.poll(isHealthy, { timeout: 30_000 }).toBe(true);
      expect((await fetch(`http://127.0.0.1:${ports[0]}/v1/models`)).status).toBe(401);
      process.kill(childOf(sandboxed.pid!), "SIGTERM");
      expect(await once(sandboxed, "close")).toEqual([0, null]);
    } finally {
      sandboxed.kill("SIGKILL");
      rmSync(data, { recursive: true, force: true });
    }
  }, 120_000);
});

/** The process that bwrap has started: the first of its namespace, as in a container. */
function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ")[0]);
}
