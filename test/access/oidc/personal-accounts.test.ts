import { beforeEach, describe, expect, it } from "vitest";
import { createInvitation } from "../../../src/access/invitations.ts";
import { toPerson } from "../../../src/access/oidc/person.ts";
import { signInPerson } from "../../../src/access/oidc/sign-in.ts";
import { type AccessUnderTest, RULES, setUpAccess } from "../set-up.ts";

const GOOGLE = "https://accounts.google.com";
const VERIFIED = { email: "ada+old@acme.example", email_verified: true };

let access: AccessUnderTest;

beforeEach(() => {
  const domains = new Set(["acme.example", "gmail.com"]);
  access = setUpAccess({ signIn: { ...RULES, provider: { name: "Google", domains } } });
});

/** Signs in with an ID token of these claims. Answers the account's address. */
async function signIn(claims: Readonly<Record<string, unknown>>): Promise<string | undefined> {
  const person = toPerson({ iss: GOOGLE, sub: "1", ...claims }, {}, { groupsClaim: "groups", idToken: undefined });
  const rules = { roles: new Map(), defaultRole: "developer", requiresAuthTime: false } as const;
  const origin = { network: undefined, browser: undefined };
  return (await signInPerson(access, { person, rules, origin })).account.email;
}

describe("a personal account at Google with an address of the domain", () => {
  it("gets no account, and not that of the address", async () => {
    await expect(signIn(VERIFIED)).rejects.toMatchObject({ reason: "unverified" });
    const [any] = await access.store.list();
    await access.store.insert({ ...any!, id: "acct_ada", email: VERIFIED.email, role: "administrator" });
    await expect(signIn(VERIFIED)).rejects.toMatchObject({ reason: "unverified" });
    expect(access.stores.rows("identities")).toEqual([]);
  });

  it("signs in where it was linked, or is invited", async () => {
    await access.store.insert({ ...(await access.store.list())[0]!, id: "acct_ada", email: VERIFIED.email });
    await access.store.link("acct_ada", { issuer: GOOGLE, subject: "1", linkedAtMs: 0 });
    expect(await signIn(VERIFIED)).toBe(VERIFIED.email);
    const email = "grace@acme.example";
    await createInvitation(access, { email, role: "developer", actorId: undefined, network: undefined });
    expect(await signIn({ ...VERIFIED, sub: "2", email })).toBe(email);
  });
});

it.each([
  ["an account of an organisation at Google", { ...VERIFIED, hd: "acme.example" }],
  ["an account of Gmail", { ...VERIFIED, email: "ada@gmail.com" }],
  ["an account of another provider", { ...VERIFIED, iss: "https://id.example.com" }],
])("%s gets an account", async (_, claims) => {
  expect(await signIn(claims)).toBe(claims.email);
});
