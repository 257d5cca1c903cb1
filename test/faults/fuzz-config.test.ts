import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runProduct } from "../support/product.ts";
import { configInput, ENVIRONMENT, SECRETS } from "./fuzz/config-inputs.ts";
import { readConfig } from "./fuzz/config-invariants.ts";
import { readCorpus } from "./fuzz/corpus.ts";
import { Findings } from "./fuzz/findings.ts";
import { STACK_TRACE } from "./fuzz/product-under-test.ts";
import { randomOf } from "./fuzz/random.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "../support/scale.ts";

const COUNT = scale(20_000, 200_000);
const BY_PROGRAM = scale(5, 300);
/** EX_CONFIG of `sysexits.h`. */
const REFUSED = 78;

describe("configurations", () => {
  it("of the corpus end as expected", () => {
    const findings = new Findings("config");
    const files = readCorpus("config");
    for (const { name, bytes } of files) {
      const input = { text: bytes.toString(), env: ENVIRONMENT, refusal: undefined, isOrderly: true };
      const { ended, flaw } = readConfig(input);
      findings.note({ name, bytes }, ended === name.split(".")[0] ? flaw : `it was ${ended}`);
    }
    findings.conclude(`configurations misread, of ${files.length} in the corpus`);
  });

  it(
    "are refused with a place and without secrets, or loaded completely",
    () => {
      const findings = new Findings("config");
      const seen = { loaded: 0, refused: 0 };
      for (let index = 0; index < COUNT; index++) {
        const input = configInput(randomOf("config", index));
        const { ended, flaw } = readConfig(input);
        findings.progress(index);
        seen[ended] += 1;
        findings.note({ name: `${index}.yaml`, bytes: Buffer.from(input.text) }, flaw);
      }
      figure({ name: "fuzzed configurations, in process", value: COUNT, unit: "", atLeast: COUNT });
      console.log(`loaded: ${seen.loaded}, refused: ${seen.refused}`);
      findings.conclude("fuzzed configurations: crashes, accepted invalid values, refusals without a place, secrets");
      expect(seen.loaded).toBeGreaterThan(COUNT / 100);
      expect(seen.refused).toBeGreaterThan(COUNT / 2);
    },
    timeLimit(600, 3600),
  );

  it(
    "are refused by the program as well, as bytes of a file",
    async () => {
      const findings = new Findings("config-program");
      const home = mkdtempSync(join(tmpdir(), "parley-fuzz-"));
      try {
        for (let index = 0; index < BY_PROGRAM; index++) {
          const input = configInput(randomOf("config-program", index));
          const variables = { PARLEY_DATA_DIR: join(home, "data"), ...input.env };
          const env = Object.fromEntries(Object.entries(variables).filter(([, value]) => !value.includes("\0")));
          // With the same variables: a set variable replaces the value in the file, even an invalid one.
          const { ended } = readConfig({ ...input, env });
          writeFileSync(join(home, "parley.yaml"), input.text);
          const { output, ending } = runProduct(["config", "check", "parley.yaml"], { home, env });
          const { code } = await ending;
          const said = output.stdout + output.stderr;
          const isSafe = !STACK_TRACE.test(said) && !Object.values(SECRETS).some((secret) => said.includes(secret));
          const isRight = code === (ended === "loaded" ? 0 : REFUSED) && isSafe;
          findings.note(
            { name: `${index}.yaml`, bytes: Buffer.from(input.text) },
            isRight ? undefined : `${code}: ${said}`,
          );
        }
      } finally {
        rmSync(home, { recursive: true });
      }
      figure({ name: "fuzzed configurations, by the program", value: BY_PROGRAM, unit: "", atLeast: BY_PROGRAM });
      findings.conclude("fuzzed configurations that the program reads differently");
    },
    timeLimit(300, 3600),
  );
});
