/**
 * What a process does: everything; completions alone, over gRPC; or HTTP alone, in front of cores in other processes.
 * `core` is what `coreTarget` takes.
 */
export type Role = { readonly name: "all" | "core" } | { readonly name: "front"; readonly core: string };
