import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { findFreePort } from "../../support/free-port.ts";

/** A reverse proxy in front of a server. */
export interface Proxy {
  readonly port: number;
  stop(): Promise<void>;
}

/** Whether nginx is installed. */
export const HAS_NGINX = spawnSync("nginx", ["-v"]).status === 0;

/** Starts nginx with a usual configuration: keep-alive to the server, and unbuffered request bodies. */
export async function startNginx(upstreamPort: number): Promise<Proxy> {
  const home = mkdtempSync(join(tmpdir(), "parley-nginx-"));
  const port = await findFreePort();
  const file = join(home, "nginx.conf");
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${home}/${name};`)
    .join("\n");
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${home}/pid; error_log ${home}/error.log;
events { worker_connections 512; }
http {
  access_log off;
  ${temporary}
  upstream parley { server 127.0.0.1:${upstreamPort}; keepalive 4; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://parley;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_request_buffering off;
    }
  }
}`,
  );
  const child = spawn("nginx", ["-p", home, "-c", file], { stdio: "ignore" });
  const ended = once(child, "exit");
  for (let turn = 0; !(await listens(port)); turn++) {
    if (turn > 500 || child.exitCode !== null) throw new Error("nginx does not listen");
  }
  return {
    port,
    async stop() {
      child.kill("SIGKILL");
      await ended;
      rmSync(home, { recursive: true, force: true });
    },
  };
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const answer = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  if (!answer) await wait(10);
  return answer;
}
