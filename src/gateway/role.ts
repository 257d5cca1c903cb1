/**
 * Role of a process: everything; gRPC only (core); or HTTP only, in front of cores in other processes. `core` is the target
 * that `coreTarget` takes.
 */
export type Role = { readonly name: "all" | "core" } | { readonly name: "front"; readonly core: string };
