import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { ALERT_CAUSES, type AlertCause, type Series } from "./monitoring/alert-causes.ts";

const RULES = join(import.meta.dirname, "../../deploy/prometheus/alerts.yaml");
const folder = mkdtempSync(join(tmpdir(), "parley-rules-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs `promtool test rules`: the alert fires at its time in one case, and not in the other. Rejects with its output. */
async function testRule(alert: string, { atMinutes, stepMinutes = 1, fires, quiet }: AlertCause): Promise<void> {
  const toTest = (series: Series, firing: 0 | 1): object => ({
    interval: `${stepMinutes}m`,
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [
      {
        expr: `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`,
        eval_time: `${atMinutes}m`,
        exp_samples: [{ labels: "{}", value: firing }],
      },
    ],
  });
  const file = join(folder, `${alert}.json`);
  const tests = [toTest(fires, 1), toTest(quiet, 0)];
  // YAML accepts JSON.
  writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: `${stepMinutes}m`, tests }));
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
    await expect(testRule(alert, cause)).resolves.toBeUndefined();
  });
});
