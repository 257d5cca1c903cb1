import { generateApiKey } from "../../../src/access/api-key.ts";
import { runProduct } from "../../support/product.ts";
import { ConsoleCaller } from "../support/console.ts";
import type { Scene } from "./scene.ts";

/** Uses the dashboard: plants the secrets that users enter, and those they receive. */
export async function plantAccounts({ planted, product, errors }: Scene): Promise<void> {
  const plant = (what: string, secret?: string): string => planted.plant(what, secret);
  const person = new ConsoleCaller(product);
  const call = async (method: string, message: object): Promise<Readonly<Record<string, unknown>>> => {
    const { status, body } = await person.ask(method, message);
    if (status !== 200) errors.push(JSON.stringify(body));
    return body;
  };
  const [email, password] = ["ada@example.com", plant("a password that is right")];
  await call("SessionService/SignUp", { email, password, name: "Ada" });
  plant("a session", person.cookie.slice("sid=".length));
  plant("a known browser", person.browserToken);
  await call("SessionService/SignIn", { email, password: plant("a password that is wrong") });
  await call("SessionService/SignIn", { email: "nobody@example.com", password: plant("nobody's password") });
  await call("SessionService/SignIn", { email, password });
  plant("another session", person.cookie.slice("sid=".length));
  const next = plant("a new password");
  await call("SessionService/ChangePassword", {
    currentPassword: plant("a wrong current password"),
    newPassword: next,
  });
  await call("SessionService/ChangePassword", { currentPassword: password, newPassword: next });
  const invitation = { email: "bob@example.com", role: "ACCOUNT_ROLE_DEVELOPER" };
  const { token } = await call("AccountService/CreateInvitation", invitation);
  plant("an invitation", String(token));
  const guessed = { email: "eve@example.com", password: next, invitationToken: plant("a guessed invitation") };
  await call("SessionService/SignUp", guessed);
  const { secret } = await call("KeyService/Create", { name: "from the dashboard" });
  plant("a key of the dashboard", String(secret));
  await call("KeyService/Revoke", { id: plant("a key in the place of an ID", generateApiKey()) });
}

/** Uses the command line: plants the secrets in its input and output. Returns the output of all other commands. */
export async function plantCommands({ planted, product: { home }, run: how }: Scene): Promise<string> {
  const run = async (...argv: readonly string[]): Promise<string> => {
    const { output, ending } = runProduct(argv, { ...how, home });
    await ending;
    return `${argv.join(" ")}\n${output.stdout}${output.stderr}`;
  };
  const made = await run("keys", "create", "--name", "planted");
  planted.plant("a key of the command line", /\bsk_parley_\w+/.exec(made)?.[0] ?? "none");
  const invited = await run("accounts", "create", "--email", "carol@example.com");
  planted.plant("an invitation of the command line", /[\w-]{40,}/.exec(invited)?.[0] ?? "none");
  const listed = [
    "keys list --json",
    "accounts list --json",
    "usage --json",
    "models --json",
    "config check parley.yaml",
  ];
  const printed = await Promise.all(listed.map((line) => run(...line.split(" "))));
  const wrongUrl = `postgres://parley:${planted.plant("the database's password")}@127.0.0.1:1/parley`;
  const away = runProduct(["keys", "list"], { ...how, home, env: { ...how.env, PARLEY_DATABASE_URL: wrongUrl } });
  await away.ending;
  return [...printed, away.output.stdout, away.output.stderr].join("\n");
}
