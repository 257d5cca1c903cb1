import { RESPONSES } from "./scenarios/callers/responses.ts";
import { playAll } from "./scenarios/suite.ts";

playAll({ entrance: "http", caller: RESPONSES });
