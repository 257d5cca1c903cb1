import { toBinary } from "@bufbuild/protobuf";
import { anyUnpack, createRegistry, fromBinary } from "./protobuf.ts";
