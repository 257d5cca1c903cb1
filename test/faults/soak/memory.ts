import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Product } from "../../support/product.ts";

/** Memory of a process right after a garbage collection. */
export interface Held {
  /** Of `performance.now()`. */
  readonly atMs: number;
  /** V8's heap, and buffers outside of it. */
  readonly heapBytes: number;
  /** Heap spaces by V8's names: compiled code grows for other reasons than objects. */
  readonly spaces: ReadonlyMap<string, number>;
  readonly descriptors: number;
  readonly rssBytes: number;
}

/** Node options that permit a garbage collection by signal, together with `--expose-gc`. */
export const COLLECT_ON_SIGNAL = `--import=${fileURLToPath(new URL("collect-on-signal.mjs", import.meta.url))}`;

const TIMEOUT_MS = 60_000;
const SPACE = /^nodejs_heap_space_size_used_bytes\{space="(\w+)"\}$/;
const MAJOR_COLLECTIONS = 'nodejs_gc_duration_seconds_count{kind="major"}';

/** Triggers a garbage collection, and reads the remaining memory from the product's metrics. */
export async function readHeld(product: Product): Promise<Held> {
  const before = (await readMetrics(product)).get(MAJOR_COLLECTIONS) ?? 0;
  product.signal("SIGUSR2");
  const untilMs = performance.now() + TIMEOUT_MS;
  for (;;) {
    const metrics = await readMetrics(product);
    const read = (name: string): number => metrics.get(name) ?? Number.NaN;
    if ((metrics.get(MAJOR_COLLECTIONS) ?? 0) > before) {
      return {
        atMs: performance.now(),
        heapBytes: read("nodejs_heap_size_used_bytes") + read("nodejs_external_memory_bytes"),
        spaces: new Map([
          ...[...metrics].flatMap(([name, value]) => {
            const space = SPACE.exec(name)?.[1];
            return space === undefined ? [] : [[space, value] as const];
          }),
          ["external", read("nodejs_external_memory_bytes")],
        ]),
        descriptors: read("process_open_fds"),
        rssBytes: read("process_resident_memory_bytes"),
      };
    }
    if (performance.now() > untilMs) throw new Error("the product has not collected its garbage");
    await delay(50);
  }
}

/** Theil–Sen estimator of the slope: the median of all pairs' slopes, robust against outliers. */
export function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const slopes = points.flatMap(([x1, y1], index) => points.slice(index + 1).map(([x2, y2]) => (y2 - y1) / (x2 - x1)));
  const sorted = slopes.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** All samples of `/metrics` by their name and labels. */
export async function readMetrics({ operationsUrl }: Pick<Product, "operationsUrl">): Promise<Map<string, number>> {
  const text = await (await fetch(`${operationsUrl}/metrics`)).text();
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))]),
  );
}
