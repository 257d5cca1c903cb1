import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type HttpServer, startHttpServer } from "../../src/inbound/http/server.ts";
import { FACTS, somebody } from "../support/core-ports.ts";
import { idleServices } from "../support/idle-services.ts";

const MIB = 1024 * 1024;

let server: HttpServer;
beforeEach(async () => {
  const services = idleServices({ authenticate: async () => somebody, limitsOf: () => FACTS });
  server = await startHttpServer(services, { host: "127.0.0.1", port: 0, corsOrigins: [] });
});
afterEach(() => server.close());

const released = (): number[] => {
  const sizes: number[] = [];
  vi.spyOn(ArrayBuffer.prototype, "transfer").mockImplementation(function (this: ArrayBuffer) {
    sizes.push(this.byteLength);
    return new ArrayBuffer(0);
  });
  return sizes;
};

it("the memory of a large JSON body is released once it is parsed, also one that is no JSON; that of a form is kept", async () => {
  const sizes = released();
  const json = JSON.stringify({ model: "a", messages: [{ role: "user", content: "x".repeat(MIB) }] });
  const headers = { authorization: "Bearer sk_x", "content-type": "application/json" };
  const base = `http://127.0.0.1:${server.port}`;
  await fetch(`${base}/v1/chat/completions`, { method: "POST", headers, body: json });
  await fetch(`${base}/v1/chat/completions`, { method: "POST", headers, body: `${json}}` });
  const message = JSON.stringify({ model: "a", messages: [{ role: "ROLE_USER", parts: [{ text: "x".repeat(MIB) }] }] });
  await fetch(`${base}/parley.v1.CompletionService/Create`, { method: "POST", headers, body: message });
  expect(sizes.splice(0)).toEqual([json.length, json.length + 1, message.length]);
  const form = new FormData();
  form.set("model", "a");
  form.set("prompt", "x");
  form.set("image", new Blob([Buffer.alloc(MIB)], { type: "image/png" }), "a.png");
  await fetch(`${base}/v1/images/edits`, {
    method: "POST",
    headers: { authorization: headers.authorization },
    body: form,
  });
  expect(sizes).toEqual([]);
});
