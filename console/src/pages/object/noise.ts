import { type Json, isMap } from "../../logic/json";

/** managedFields is longer than most objects and is shown as owners of fields instead. */
export function withoutNoise(object: Json | null, managed: boolean): Json | undefined {
  if (object === null) return undefined;
  if (managed || !isMap(object) || !isMap(object.metadata)) return object;
  const metadata = { ...object.metadata };
  delete metadata.managedFields;
  return { ...object, metadata };
}
