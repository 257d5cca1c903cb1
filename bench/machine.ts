import { cpus, release, totalmem } from "node:os";
import { isPinned } from "./children.ts";
import { nginxPath } from "./contestants/floors.ts";

/** Properties of this machine that influence the figures. */
export function conditions(): readonly string[] {
  return [
    `Node ${process.versions.node}`,
    cpus()[0]?.model.trim() ?? "unknown processor",
    isPinned ? "server on a core of its own" : "processes not bound to cores (no taskset, or one core)",
    ...(nginxPath === undefined ? ["nginx is not installed and left out"] : []),
  ];
}

/** Description of the machine in the document. */
export function machine(): readonly string[] {
  const memory = `${Math.round(totalmem() / 1024 ** 3)} GiB of memory`;
  return [
    ...conditions(),
    `${cpus().length} processors, ${memory}`,
    `Linux ${/^\d+\.\d+/.exec(release())?.[0] ?? release()}`,
  ];
}
