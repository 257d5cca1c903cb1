import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { programEnvironment } from "../../../scripts/program.mjs";

const root = join(import.meta.dirname, "../../..");
/** The end of the list in `store/migrations.ts`. */
const LIST_END = /\n\];\n$/;

/** A copy of the sources with more migrations, as a later release has. */
export interface LaterRelease {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
  remove(): void;
}

/** Makes a later release. `migrations`: their source text, objects of the type `Migration`. */
export function makeLaterRelease(migrations: readonly string[]): LaterRelease {
  const folder = mkdtempSync(join(tmpdir(), "parley-later-"));
  for (const name of ["src", "gen", "web/paths.ts", "package.json"])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  const file = join(folder, "src/store/migrations.ts");
  const before = readFileSync(file, "utf8");
  if (!LIST_END.test(before)) throw new Error("store/migrations.ts does not end with the list of migrations");
  writeFileSync(file, before.replace(LIST_END, `\n${migrations.map((each) => `  ${each},\n`).join("")}];\n`));
  return {
    program: join(folder, "src/main.ts"),
    env: programEnvironment,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
