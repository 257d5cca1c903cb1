/** Display names of the endpoints. */
export const ENTRANCES: Readonly<Record<string, string>> = {
  http: "HTTP",
  connect: "Connect",
  grpc: "gRPC",
  console: "Playground",
};
