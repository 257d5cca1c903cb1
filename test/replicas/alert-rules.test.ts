import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { ALERT_CAUSES, type Series } from "./monitoring/alert-causes.ts";

const RULES = join(import.meta.dirname, "../../deploy/prometheus/alerts.yaml");
const folder = mkdtempSync(join(tmpdir(), "parley-rules-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs `promtool test rules`: at `atMinutes` of the series the alert fires for as many things as expected. Rejects with its output. */
async function testRule(alert: string, series: Series, { atMinutes, firing }: { atMinutes: number; firing: number }) {
  const file = join(folder, `${alert}-${firing}.json`);
  const test = {
    interval: "1m",
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [
      {
        expr: `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`,
        eval_time: `${atMinutes}m`,
        exp_samples: [{ labels: "{}", value: firing }],
      },
    ],
  };
  // YAML accepts JSON.
  writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: "1m", tests: [test] }));
  await promisify(execFile)("promtool", ["test", "rules", file]);
}

describe("the alert rules", () => {
  it("are valid for promtool, and each has a cause here", async () => {
    const { stdout } = await promisify(execFile)("promtool", ["check", "rules", RULES]);
    expect(stdout).toContain("SUCCESS");
    const groups = (parse(readFileSync(RULES, "utf8")) as { groups: { rules: { alert: string }[] }[] }).groups;
    const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
    expect(Object.keys(ALERT_CAUSES)).toEqual(alerts);
  });

  it.each(Object.entries(ALERT_CAUSES))("%s fires by its cause, and not by what is like it", async (alert, cause) => {
    const { atMinutes, fires, quiet } = cause;
    await expect(testRule(alert, fires, { atMinutes, firing: 1 })).resolves.toBeUndefined();
    await expect(testRule(alert, quiet, { atMinutes, firing: 0 })).resolves.toBeUndefined();
  });
});
