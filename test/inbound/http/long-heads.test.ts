import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { absoluteForm } from "../../../src/inbound/http/exchange.ts";
import { type HttpServer, startHttpServer } from "../../../src/inbound/http/server.ts";
import { idleServices } from "../../support/idle-services.ts";

/** As many bytes as Node lets a request's head have, about. */
const LONG = 15_000;
/** Different letters in percent-encoding: the time to parse a host of them grows with the square of their number. */
const LETTERS = Array.from({ length: LONG / 9 }, (_, at) => encodeURIComponent(String.fromCharCode(0x4e00 + at))).join(
  "",
);

let server: HttpServer;
beforeAll(async () => {
  server = await startHttpServer(idleServices(), { host: "127.0.0.1", port: 0, corsOrigins: [] });
});
afterAll(() => server.close());

async function ask(target: string, host: string): Promise<string> {
  const socket = connect(server.port, "127.0.0.1");
  let answer = "";
  socket.on("data", (piece) => (answer += String(piece)));
  socket.write(`GET ${target} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
  await once(socket, "close");
  return answer;
}

it.each([
  ["a host that is longer than a name", "/healthz", LETTERS, "The Host header is not a host."],
  [
    "an address with such a host",
    `http://${LETTERS}/healthz`,
    "a",
    "The request's address and its Host header differ.",
  ],
  ["a query of thousands of parameters", `/v1/models?${"%aa&".repeat(LONG / 4)}`, "a", "more than 100 parameters"],
])("%s is refused", async (_, target, host, message) => {
  const answer = await ask(target, host);
  expect(answer).toContain("HTTP/1.1 400");
  expect(answer).toContain(message);
});

it("an address with a host as long as a name, and a query of some parameters, are served", async () => {
  const host = `${"a.".repeat(126)}a:8080`;
  expect(await ask(`http://${host}/healthz?${"a=b&".repeat(99)}`, host)).toContain("HTTP/1.1 200");
});

it("a target that is no address of http has no absolute form", () => {
  for (const target of ["/v1/models", "*", "a:80", "ftp://a/", "http://", "http:///a", `http://${LETTERS}`])
    expect(absoluteForm(target)).toBeUndefined();
  expect(absoluteForm("HTTP://a:80/b?c#d")?.pathname).toBe("/b");
});
