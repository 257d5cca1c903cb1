import { createClient } from "@connectrpc/connect";
import { PlaygroundService } from "../../gen/parley/console/v1/playground_pb.js";
import { transport } from "./transport.ts";

export const playground = createClient(PlaygroundService, transport);
