import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { tarGz } from "./tar.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const PUBLIC = "parley/v1";
const GOOGLE_PROTOS = join(root, "node_modules/google-gax/build/protos");
/** Messages of error details, for languages without a package of them. */
const DETAIL_PROTOS = new Set(["google/rpc/error_details.proto", "google/rpc/status.proto"]);
const BUF = createRequire(import.meta.url)
  .resolve("@bufbuild/buf/package.json")
  .replace("package.json", "bin/buf");

/** The public contract for downloads. */
export interface Contract {
  /** A `FileDescriptorSet` with comments. */
  readonly descriptors: Buffer;
  /** All downloads, by path below `/proto/`. */
  readonly files: ReadonlyMap<string, Buffer>;
}

/** Reads the public package's protos, builds their descriptors with buf, and packs them as a buf module. */
export async function buildContract(): Promise<Contract> {
  const descriptors = await buildDescriptors();
  const protos = readFolder(join(root, "proto", PUBLIC), `${PUBLIC}/`);
  const details = readFolder(join(GOOGLE_PROTOS, "google/rpc"), "google/rpc/");
  const archive = tarGz(
    new Map([
      ...readFolder(fileURLToPath(new URL("module", import.meta.url)), ""),
      ...protos,
      ...details.filter(([path]) => DETAIL_PROTOS.has(path)),
    ]),
  );
  return {
    descriptors,
    files: new Map([...protos, ["parley.binpb", descriptors], ["parley-protos.tar.gz", archive]]),
  };
}

/** The files of a folder in the order of their names, by their paths below `prefix`. */
function readFolder(folder: string, prefix: string): (readonly [path: string, content: Buffer])[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .toSorted()
    .map((name) => [prefix + name, readFileSync(join(folder, name))] as const);
}

async function buildDescriptors(): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), "parley-contract-"));
  try {
    const path = join(folder, "parley.binpb");
    const args = ["build", "--path", `proto/${PUBLIC}`, "--as-file-descriptor-set", "--output", path];
    await promisify(execFile)(process.execPath, [BUF, ...args], { cwd: root });
    return readFileSync(path);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
