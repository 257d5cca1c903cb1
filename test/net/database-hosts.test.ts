import { describe, expect, it } from "vitest";
import { splitDatabaseHosts } from "../../src/net/database-hosts.ts";

describe("an address of PostgreSQL", () => {
  it.each([
    ["postgres://u:p@a/db", ["postgres://u:p@a/db"], false],
    ["postgres:///db?host=/run/postgresql", ["postgres:///db?host=/run/postgresql"], false],
    ["postgres://u:p@a,b/db", ["postgres://u:p@a/db", "postgres://u:p@b/db"], true],
    [
      "postgresql://u:p@a:1,[::1]:2,c/db?sslmode=verify-full&target_session_attrs=read-write",
      [
        "postgresql://u:p@a:1/db?sslmode=verify-full",
        "postgresql://u:p@[::1]:2/db?sslmode=verify-full",
        "postgresql://u:p@c/db?sslmode=verify-full",
      ],
      true,
    ],
    ["postgres://a/db?target_session_attrs=primary", ["postgres://a/db"], true],
    ["postgres://u:p,q@a/db", ["postgres://u:p,q@a/db"], false],
  ])("%s has these hosts", (address, urls, writableOnly) => {
    expect(splitDatabaseHosts(address)).toEqual({ urls, writableOnly });
  });

  it.each(["", "a,b", "postgres://a,,b/db", "postgres://a,b:x/db", "postgres://a,b/db?target_session_attrs=any"])(
    "%j is none",
    (address) => {
      expect(splitDatabaseHosts(address)).toBeUndefined();
    },
  );
});
