import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parse, stringify } from "yaml";
import { findFreePort } from "../../support/free-port.ts";

const FOLDER = join(import.meta.dirname, "../../../deploy/prometheus");
const STARTING_MS = 20_000;

/** One series of a query's result. */
interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A running Prometheus with the configuration of `deploy/prometheus`. */
export interface Prometheus {
  /** The result of a query now. Rejects with Prometheus' message for an invalid one. */
  query(expr: string): Promise<Sample[]>;
  get<T>(path: string): Promise<T>;
  /** Ends it, and removes its data. */
  stop(): Promise<void>;
}

interface Configuration {
  global: Record<string, string>;
  scrape_configs: Record<string, unknown>[];
}

/** Starts one that scrapes `targets` each second in place of those that DNS would name. */
export async function startPrometheus(targets: readonly string[]): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), "parley-prometheus-"));
  const config = parse(readFileSync(join(FOLDER, "prometheus.yml"), "utf8")) as Configuration;
  config.global = { ...config.global, scrape_interval: "1s", evaluation_interval: "1s" };
  const [job] = config.scrape_configs;
  delete job!["dns_sd_configs"];
  job!["static_configs"] = [{ targets }];
  writeFileSync(join(folder, "prometheus.yml"), stringify(config));
  copyFileSync(join(FOLDER, "alerts.yaml"), join(folder, "alerts.yaml"));
  const url = `http://127.0.0.1:${await findFreePort()}`;
  const child = spawn(
    "prometheus",
    [
      `--config.file=${join(folder, "prometheus.yml")}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=${new URL(url).host}`,
      "--log.level=warn",
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => void (log += text));
  const ended = once(child, "close").catch((cause: unknown) => {
    throw new Error("prometheus is needed for this test: apt-get install prometheus", { cause });
  });
  const get = async <T>(path: string): Promise<T> => {
    const answer = (await (await fetch(`${url}${path}`)).json()) as { data?: T; error?: string };
    if (answer.data === undefined) throw new Error(answer.error);
    return answer.data;
  };
  const prometheus: Prometheus = {
    get,
    async query(expr) {
      const { result } = await get<{ result: { metric: Sample["labels"]; value: [number, string] }[] }>(
        `/api/v1/query?${new URLSearchParams({ query: expr }).toString()}`,
      );
      return result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }));
    },
    async stop() {
      child.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
  const isReady = async (): Promise<boolean> => (await fetch(`${url}/-/ready`).catch(() => undefined))?.status === 200;
  const beganMs = performance.now();
  while (!(await isReady())) {
    if (child.exitCode !== null || performance.now() - beganMs > STARTING_MS) {
      await prometheus.stop();
      throw new Error(`Prometheus did not start.\n${log}`);
    }
    await Promise.race([sleep(50), ended]);
  }
  return prometheus;
}
