import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { rolldown } from "rolldown";
import { join, relative } from "node:path";
import { buildContract } from "../../../scripts/reference/contract.ts";
import { makeReference } from "../../../scripts/reference/reference.ts";
import { tarGz } from "../../../scripts/reference/tar.ts";

const root = join(import.meta.dirname, "../../..");

describe("the contract as people download it", () => {
  it("is the same whenever it is made", async () => {
    const [one, other] = await Promise.all([buildContract(), buildContract()]);
    expect([...one.files]).toEqual([...other.files]);
    expect(
      [...one.files.keys()].filter((path) => !/^(parley\/v1\/\w+\.proto|parley[\w-]*\.(binpb|tar\.gz))$/.test(path)),
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

describe("the reference", () => {
  it("says of every field what it means", async () => {
    const { topics } = makeReference(await buildContract());
    const fields = topics.flatMap(({ grpc }) => grpc).flatMap((shape) => shape.fields);
    expect(fields.length).toBeGreaterThan(150);
    expect(fields.filter(({ text }) => text === "")).toEqual([]);
  });

  it("leads only to shapes that are in it", async () => {
    const { topics, methods } = makeReference(await buildContract());
    const shapes = topics.flatMap(({ http, grpc }) => [...http, ...grpc]);
    const anchors = new Set(shapes.map(({ anchor }) => anchor));
    const parts = [
      ...shapes.flatMap(({ fields, choices = [] }) => [...choices, ...fields.flatMap(({ type }) => type)]),
      ...methods.flatMap(({ input, output }) => [input, output]),
    ];
    expect(parts.filter(({ anchor }) => anchor !== undefined && !anchors.has(anchor))).toEqual([]);
  });

  it("is built again whenever something that it says has changed", async () => {
    const { webAppSources } = (await import(join(root, "scripts/web-app.mjs"))) as { webAppSources: readonly string[] };
    const bundle = await rolldown({
      input: join(root, "scripts/reference/reference.ts"),
      external: (id) => !id.startsWith(".") && !id.startsWith("/"),
    });
    const { output } = await bundle.generate();
    const modules = output.flatMap((chunk) => (chunk.type === "chunk" ? chunk.moduleIds : []));
    const paths = modules.map((id) => relative(root, id)).filter((path) => !path.startsWith("node_modules"));
    expect(paths).toContain("src/inbound/failure-table.ts");
    const unwatched = paths.filter(
      (path) => !webAppSources.some((source) => path === source || path.startsWith(`${source}/`)),
    );
    expect(unwatched).toEqual([]);
  });
});
