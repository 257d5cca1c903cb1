import { createClient } from "@connectrpc/connect";
import { PasswordService } from "../../gen/parley/console/v1/password_pb.js";
import { transport } from "./transport.ts";

/** Client for new passwords by link. */
export const passwords = createClient(PasswordService, transport);
