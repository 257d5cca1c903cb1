import type { Worker } from "node:cluster";

/** How node:cluster says that a connection comes with a message. */
interface Handover {
  readonly cmd: "NODE_CLUSTER";
  readonly act: "newconn";
  readonly seq: number;
}

/** A connection that nobody reads. */
interface Connection {
  close(): void;
}

type Send = (message: object, connection?: Connection, ...rest: readonly unknown[]) => boolean;

/**
 * Closes the connections that were on their way to a worker when it died. node:cluster keeps them open in the parent and
 * forgets them: their callers would wait until their patience is over, and the parent would run out of file descriptors.
 * Looks at the library's own messages, for want of another way; should they change, this does nothing.
 */
export function closeWhenLost(worker: Worker): void {
  const underWay = new Map<number, Connection>();
  const child = worker.process;
  const send = child.send.bind(child) as unknown as Send;
  const noting: Send = (message, connection, ...rest) => {
    if (connection !== undefined && isHandover(message)) underWay.set(message.seq, connection);
    return send(message, connection, ...rest);
  };
  child.send = noting as typeof child.send;
  child.on("internalMessage", ({ ack }: { readonly ack?: number }) => {
    // From here on it is the worker's, or goes to another one.
    if (ack !== undefined) underWay.delete(ack);
  });
  const close = (): void => {
    for (const connection of underWay.values()) connection.close();
    underWay.clear();
  };
  worker.once("disconnect", close);
  worker.once("exit", close);
}

function isHandover(message: object): message is Handover {
  const { cmd, act, seq } = message as Partial<Handover>;
  return cmd === "NODE_CLUSTER" && act === "newconn" && typeof seq === "number";
}
