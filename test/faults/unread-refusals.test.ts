import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { callBlock, httpBlock, REQUEST } from "./hostile/floods.ts";
import {
  dataFrame,
  grpcHeaders,
  grpcMessage,
  headerBlock,
  headersFrame,
  PREFACE,
  RawHttp2,
  settings,
} from "./hostile/raw-http2.ts";
import { CREATE, MIB, startTarget, type Target } from "./hostile/target.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "../support/scale.ts";
import { createKey } from "../support/cli.ts";

/*
 * Clients send calls that are refused, or that wait for their bodies, and read nothing. The process has a heap of 512 MiB.
 */

const HOLD_MS = 4_000;
const MESSAGE = grpcMessage(REQUEST);

let target: Target;
afterEach(() => target.stop());

interface Attack {
  readonly name: string;
  /** Calls on each connection. */
  readonly calls: number;
  readonly headers: () => Buffer | Promise<Buffer>;
  readonly isWhole: boolean;
  readonly open: () => RawHttp2;
  /** Share of the connections. Default: 1. */
  readonly share?: number;
  /** Whether they are requests of HTTP, on one port with gRPC. Default: calls of gRPC on their own. */
  readonly isHttp?: boolean;
}

const withoutKey = (): Buffer => headerBlock(grpcHeaders(CREATE));
const WRONG_KEY = `sk_parley_${"A".repeat(40)}`;
const withWrongKey = (): Buffer => callBlock(WRONG_KEY);
const httpWithWrongKey = (): Buffer => httpBlock(WRONG_KEY);
/** A key of its own, so that others' requests do not share its limits. */
const makeKey = async (): Promise<string> => (await createKey(target.product)).key;
const withKey = async (): Promise<Buffer> => callBlock(await makeKey());
const httpWithKey = async (): Promise<Buffer> => httpBlock(await makeKey());

const openPlain = (): RawHttp2 => new RawHttp2(target.product.grpcPort).pause().hello();
/** Never acknowledges the SETTINGS of the server, so that their limits do not apply. */
const openUnacknowledged = (): RawHttp2 =>
  new RawHttp2(target.product.grpcPort).pause().write(Buffer.concat([PREFACE, settings()]));
/** Just below the limit of streams of a new connection, and far above it. */
const ATTACKS: readonly Attack[] = [
  { name: "without a key", calls: 99, headers: withoutKey, isWhole: true, open: openPlain },
  { name: "with a wrong key", calls: 99, headers: withWrongKey, isWhole: true, open: openPlain },
  { name: "that are never sent", calls: 99, headers: withoutKey, isWhole: false, open: openPlain },
  // Each costs as much as a completion until it is refused, so that more delay others for longer than the limit.
  { name: "of a key over its limits", calls: 99, headers: withKey, isWhole: true, open: openPlain, share: 0.3 },
  { name: "of a key that are never sent", calls: 99, headers: withKey, isWhole: false, open: openPlain },
  { name: "beyond the limit of streams", calls: 990, headers: withoutKey, isWhole: true, open: openPlain },
  { name: "before SETTINGS apply", calls: 990, headers: withoutKey, isWhole: true, open: openUnacknowledged },
  // A refusal of HTTP is more work than one of gRPC: others would wait for longer than the limit, too.
  ...[
    {
      name: "of HTTP with a wrong key",
      calls: 99,
      headers: httpWithWrongKey,
      isWhole: true,
      open: openPlain,
      share: 0.5,
    },
    { name: "of HTTP with a key", calls: 99, headers: httpWithKey, isWhole: true, open: openPlain, share: 0.3 },
    {
      name: "of HTTP with a key that are never sent",
      calls: 99,
      headers: httpWithKey,
      isWhole: false,
      open: openPlain,
    },
    {
      name: "of HTTP before SETTINGS apply",
      calls: 990,
      headers: httpWithWrongKey,
      isWhole: true,
      open: openUnacknowledged,
      share: 0.5,
    },
  ].map((attack) => ({ ...attack, isHttp: true })),
];

function call(stream: number, block: Buffer, isWhole: boolean): Buffer {
  const headers = headersFrame(stream, block, "body follows");
  return isWhole ? Buffer.concat([headers, dataFrame(stream, MESSAGE, "ends")]) : headers;
}

describe.each(scale([200], [200, 1000]))("unread calls on %d connections", (connections) => {
  it.each(ATTACKS)("$name take bounded memory", { timeout: timeLimit(60, 180) }, async (attack) => {
    const env = { NODE_OPTIONS: "--max-old-space-size=512" };
    target = await startTarget(undefined, { env, isShared: attack.isHttp === true });
    const attackers = Array.from({ length: connections * (attack.share ?? 1) }, attack.open);
    const block = await attack.headers();
    for (const attacker of attackers)
      attacker.write(
        Buffer.concat(Array.from({ length: attack.calls }, (_, index) => call(2 * index + 1, block, attack.isWhole))),
      );
    const took: number[] = [];
    let mostBytes = 0;
    for (const endMs = performance.now() + HOLD_MS; performance.now() < endMs; await sleep(20)) {
      took.push(await target.goodRequest());
      mostBytes = Math.max(mostBytes, target.product.rssBytes());
    }
    for (const attacker of attackers) attacker.close();
    took.sort((a, b) => a - b);
    const name = `unread calls on ${attackers.length} connections ${attack.name}`;
    const p99 = Math.round(took[Math.floor(took.length * 0.99)]!);
    figure({ name: `${name}: memory of the process`, value: Math.round(mostBytes / MIB), unit: "MiB", atMost: 512 });
    // Generous: the clients of this test, and others, use the same processors.
    figure({ name: `${name}: p99 of others`, value: p99, unit: "ms", atMost: 15_000 });
    expect(target.product.output.stderr).not.toMatch(/"level":"(fatal|error)"/);
  });
});
