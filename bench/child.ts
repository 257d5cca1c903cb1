import type { AddressInfo, Server } from "node:net";

/** What a child process of the benchmark says when it listens. */
export interface Ready {
  readonly port: number;
}

/** Listens on a free loopback port, tells the parent which, and ends with the parent. */
export function reportReady(server: Server): void {
  server.listen({ port: 0, host: "127.0.0.1", backlog: 1024 }, () => {
    process.send?.({ port: (server.address() as AddressInfo).port } satisfies Ready);
  });
  endWithParent();
}

/** Ends this process when the one that started it is gone. */
export function endWithParent(): void {
  process.once("disconnect", () => process.exit(0));
}
