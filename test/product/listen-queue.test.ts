import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { startProduct } from "../support/product.ts";

/** Four times Node's default. */
const CONNECTIONS = 2_048;

const isLargeEnough = Number(readFileSync("/proc/sys/net/core/somaxconn", "latin1")) >= CONNECTIONS;

it.runIf(isLargeEnough).each(["http", "grpc"] as const)(
  "a burst of connections waits in the kernel while the event loop is busy: %s",
  async (entrance) => {
    const product = await startProduct({ config: { grpc: { listen: "127.0.0.1:0" } } });
    product.signal("SIGSTOP");
    const port = entrance === "http" ? product.httpPort : product.grpcPort;
    let connected = 0;
    const sockets: Socket[] = Array.from({ length: CONNECTIONS }, () =>
      connect(port, "127.0.0.1", () => (connected += 1)).on("error", () => undefined),
    );
    onTestFinished(async () => {
      sockets.forEach((socket) => socket.destroy());
      product.signal("SIGCONT");
      await product.stop();
    });
    // The process accepts none, so that clients that try again find no more room.
    await expect.poll(() => connected).toBe(CONNECTIONS);
  },
);
