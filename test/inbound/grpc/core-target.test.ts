import { describe, expect, it } from "vitest";
import { coreTarget } from "../../../src/inbound/grpc/core-target.ts";

describe("the address of a front's cores", () => {
  it.each([
    ["core:50051", "dns:///core:50051"],
    ["[::1]:50051", "dns:///[::1]:50051"],
    ["127.0.0.1:1,127.0.0.2:2", "ipv4:127.0.0.1:1,127.0.0.2:2"],
    ["127.0.0.1:1, 127.0.0.2:2", "ipv4:127.0.0.1:1,127.0.0.2:2"],
    ["[::1]:1,[::1]:2", "ipv6:[::1]:1,[::1]:2"],
    ["dns:///cores.internal:50051", "dns:///cores.internal:50051"],
    ["unix:/run/parley.sock", "unix:/run/parley.sock"],
  ])("%s is %s", (text, target) => {
    expect(coreTarget(text)).toBe(target);
  });

  it.each([
    ["core", /not HOST:PORT/],
    ["core:70000", /not HOST:PORT/],
    ["", /not HOST:PORT/],
    ["http://core:50051", /not HOST:PORT/],
    ["core-1:50051,core-2:50051", /one name that resolves to all of them, or IP addresses/],
    ["127.0.0.1:1,[::1]:1", /all IPv4 or all IPv6/],
  ])("cannot be %j", (text, why) => {
    expect(() => coreTarget(text)).toThrow(why);
  });
});
