import type { Replica } from "../../gen/parley/console/v1/model_pb.js";

/** Name of a process: its machine or container, and its worker where it has several. */
export function processName(replica: Replica | undefined): string {
  if (replica === undefined) return "";
  return replica.worker === 0 ? replica.host : `${replica.host}, worker ${replica.worker}`;
}
