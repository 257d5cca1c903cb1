import { createClient } from "@connectrpc/connect";
import { PasswordService } from "../../gen/parley/console/v1/password_pb.js";
import { queryClient } from "./query-client.ts";
import { sessionQuery } from "./session.ts";
import { transport } from "./transport.ts";

/** Client for new passwords by link. */
export const passwords = createClient(PasswordService, transport);

/** Sets a new password by a link. All sessions end, also one of another tab. */
export async function resetPassword(token: string, newPassword: string): Promise<void> {
  await passwords.reset({ token, newPassword });
  await queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey });
}
