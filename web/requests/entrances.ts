/** How requests come in, for people. */
export const ENTRANCES: Readonly<Record<string, string>> = {
  http: "HTTP",
  connect: "Connect",
  grpc: "gRPC",
  console: "Playground",
};
