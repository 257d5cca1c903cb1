import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { stopChild } from "../children.ts";

const PAUSE_MS = 50;

/** A loopback port for a program that cannot choose one itself. */
export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** Resolves when a program listens. After a time limit, ends it and throws. */
export async function untilListening(
  child: ChildProcess,
  { port, limitMs, name }: { readonly port: number; readonly limitMs: number; readonly name: string },
): Promise<void> {
  const endMs = performance.now() + limitMs;
  while (!(await accepts(port))) {
    if (performance.now() > endMs || child.exitCode !== null) {
      await stopChild(child);
      throw new Error(`${name} did not start to listen`);
    }
    await delay(PAUSE_MS);
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
