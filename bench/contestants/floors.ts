import type { StdioOptions } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Ready } from "../child.ts";
import { findProgram, SERVER_CORE, startOwn, startPinned } from "../children.ts";
import { findFreePort, untilListening } from "./ports.ts";
import type { RunningServer, Setting } from "./server.ts";

/** Last bytes of a stream of the mock upstream. */
export const LAST_WORDS = 'data: {"type":"message_stop"}';

/** Key for servers without authentication. */
export const NO_KEY = "sk_parley_none";

/** Name of the floor for ratios over HTTP. */
export const BYTE_RELAY = "byte relay (node:http + undici)";
/** Name of the floor for ratios over gRPC. */
export const GRPC_RELAY = "byte relay (grpc-js + undici)";

/** Name of nginx in tables. */
export const NGINX = "nginx proxy_pass";

/** Common settings of floors: little code, so a short warm-up. */
const FLOOR = { key: NO_KEY, lastWords: LAST_WORDS, warmUpSeconds: 3 };

/** Path of nginx; undefined where it is not installed. */
export const nginxPath = findProgram("nginx");

/** A byte relay over HTTP. */
export async function startByteRelay({ upstreamPort, nodeOptions = [] }: Setting): Promise<RunningServer> {
  const args = [String(upstreamPort)];
  const program = { core: SERVER_CORE, file: "floors/byte-relay.ts", args, nodeOptions };
  const [process, { port }] = await startOwn<Ready>(program);
  return { name: BYTE_RELAY, process, port, ...FLOOR };
}

/** A byte relay that also parses and writes each body. */
export async function startJsonRelay({ upstreamPort }: Setting): Promise<RunningServer> {
  const program = { core: SERVER_CORE, file: "floors/byte-relay.ts", args: [String(upstreamPort), "json"] };
  const [process, { port }] = await startOwn<Ready>(program);
  return { name: "the same, parsing and writing JSON", process, port, ...FLOOR };
}

/** A gRPC server that generates its answers. */
export async function startGrpcEcho({ load }: Setting): Promise<RunningServer> {
  const program = { core: SERVER_CORE, file: "floors/grpc.ts", args: [JSON.stringify(load)] };
  const [process, { port }] = await startOwn<Ready>(program);
  return { name: "echo without upstream (grpc-js)", process, port, ...FLOOR };
}

/** A byte relay from gRPC to the upstream. */
export async function startGrpcRelay({ load, upstreamPort }: Setting): Promise<RunningServer> {
  const args = [JSON.stringify(load), String(upstreamPort)];
  const [process, { port }] = await startOwn<Ready>({ core: SERVER_CORE, file: "floors/grpc.ts", args });
  return { name: GRPC_RELAY, process, port, ...FLOOR };
}

/** nginx's error log, with the reason of a failed start. */
const NGINX_STDIO: StdioOptions = ["ignore", "ignore", "inherit"];
/** Time limit for nginx to listen. */
const NGINX_START_MS = 5_000;

/** Starts one nginx process with keep-alive on both sides and no buffering. Throws when it does not start. */
export async function startNginx({ upstreamPort, folder }: Setting): Promise<RunningServer> {
  const prefix = mkdtempSync(join(folder, "nginx-"));
  mkdirSync(join(prefix, "temp"));
  const port = await findFreePort();
  const file = join(prefix, "nginx.conf");
  writeFileSync(file, nginxConfig({ port, upstreamPort }));
  const args = ["-p", prefix, "-c", file];
  const process = startPinned({ core: SERVER_CORE, program: nginxPath!, args, stdio: NGINX_STDIO });
  await untilListening(process, { port, limitMs: NGINX_START_MS, name: "nginx" });
  return { name: NGINX, process, port, ...FLOOR, warmUpSeconds: 1 };
}

function nginxConfig({ port, upstreamPort }: { port: number; upstreamPort: number }): string {
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path temp/${name};`);
  return `
daemon off;
master_process off;
worker_processes 1;
pid nginx.pid;
error_log /dev/null crit;
events { worker_connections 4096; }
http {
  access_log off;
  ${paths.join(" ")}
  keepalive_requests 100000000;
  keepalive_timeout 600s;
  client_body_buffer_size 64k;
  proxy_buffer_size 16k;
  proxy_buffers 8 16k;
  upstream mock {
    server 127.0.0.1:${upstreamPort};
    keepalive 1024;
    keepalive_requests 100000000;
  }
  server {
    listen 127.0.0.1:${port} backlog=1024;
    location / {
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`;
}
