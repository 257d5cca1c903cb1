import { playAll } from "./scenarios/suite.ts";

playAll({ entrance: "grpc", service: "completions" });
