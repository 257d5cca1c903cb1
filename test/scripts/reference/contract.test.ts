import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { buildContract } from "../../../scripts/reference/contract.ts";
import { tarGz } from "../../../scripts/reference/tar.ts";

describe("the contract as people download it", () => {
  it("is the same whenever it is made", async () => {
    const [one, other] = await Promise.all([buildContract(), buildContract()]);
    expect([...one.files]).toEqual([...other.files]);
    expect(
      [...one.files.keys()].filter(
        (path) => !/^(parley\/v1\/\w+\.(proto|json)|parley[\w-]*\.(binpb|tar\.gz))$/.test(path),
      ),
    ).toEqual([]);
  });

  it("is in an archive that tar reads", () => {
    const files = new Map([
      ["a/one.proto", Buffer.from("one\n")],
      ["b/two.proto", Buffer.alloc(512, "2")],
      ["empty", Buffer.alloc(0)],
    ]);
    const archive = tarGz(files);
    const tar = (...args: string[]): Buffer => execFileSync("tar", args, { input: archive });
    expect(tar("-tzf", "-").toString().trim().split("\n")).toEqual([...files.keys()]);
    for (const [path, content] of files) expect(tar("-xzOf", "-", path)).toEqual(content);
  });
});
