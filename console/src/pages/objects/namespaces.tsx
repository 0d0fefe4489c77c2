/** The namespaces of the cluster to choose from; a field to type in where they cannot be listed. */
import { json } from "../../api/client";
import { textAt, listAt, type JsonMap } from "../../logic/json";
import { useRead } from "../../ui/resource";
import { choose } from "../../ui/router";

const MOST = 500;
const NAMESPACES = `/api/v1/namespaces?limit=${MOST}`;
const PARTIAL = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

export function NamespacePicker(props: { value: string }) {
  const read = useRead<string[] | null>("namespaces", async (signal) => {
    const list = await json<JsonMap>(NAMESPACES, { accept: PARTIAL, signal });
    if (textAt(list, "metadata", "continue") !== "") return null;
    return listAt(list, "items").map((item) => textAt(item, "metadata", "name"));
  });
  const known = read.value;
  const take = (text: string) => choose({ namespace: text === "" ? undefined : text });
  return (
    <label class="pick">
      Namespace
      {known && !read.problem ? (
        <select value={props.value} onChange={(event) => take(event.currentTarget.value)}>
          <option value="">All namespaces</option>
          {props.value !== "" && !known.includes(props.value) && <option value={props.value}>{props.value}</option>}
          {known.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      ) : (
        <input defaultValue={props.value} spellcheck={false} onChange={(event) => take(event.currentTarget.value.trim())} />
      )}
    </label>
  );
}
