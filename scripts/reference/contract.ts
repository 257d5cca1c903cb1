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

/** Reads the public package's protos and builds their descriptors with buf. */
export async function buildContract(): Promise<Contract> {
  const descriptors = await buildDescriptors();
  const protos = new Map(
    readdirSync(join(root, "proto", PUBLIC))
      .toSorted()
      .map((name) => [`${PUBLIC}/${name}`, readFileSync(join(root, "proto", PUBLIC, name))] as const),
  );
  return {
    descriptors,
    files: new Map([...protos, ["parley.binpb", descriptors], ["parley-protos.tar.gz", tarGz(protos)]]),
  };
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
