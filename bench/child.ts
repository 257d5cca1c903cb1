import type { AddressInfo, Server } from "node:net";

/** Message of a child process that listens. */
export interface Ready {
  readonly port: number;
}

/** Listens on a free loopback port, sends it to the parent, and exits with the parent. */
export function reportReady(server: Server): void {
  server.listen({ port: 0, host: "127.0.0.1", backlog: 1024 }, () => {
    process.send?.({ port: (server.address() as AddressInfo).port } satisfies Ready);
  });
  endWithParent();
}

/** Exits when the parent process has exited. */
export function endWithParent(): void {
  process.once("disconnect", () => process.exit(0));
}
