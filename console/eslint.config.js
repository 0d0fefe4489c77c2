import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

// Whatever a stored object holds must never become markup or script.
const markup = ["innerHTML", "outerHTML", "insertAdjacentHTML", "dangerouslySetInnerHTML", "srcdoc"];

export default tseslint.config(
  { ignores: ["node_modules"] },
  {
    files: ["src/**/*.ts", "src/**/*.tsx", "tests/**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    plugins: { "react-hooks": hooks },
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      "react-hooks/rules-of-hooks": "error",
      "react-hooks/exhaustive-deps": "error",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "max-lines": ["error", { max: 400 }],
      "no-eval": "error",
      "no-implied-eval": "off",
      "@typescript-eslint/no-implied-eval": "error",
      "no-restricted-syntax": [
        "error",
        ...markup.map((name) => ({
          selector: `Identifier[name='${name}'], JSXIdentifier[name='${name}']`,
          message: "text of objects is never markup",
        })),
        { selector: "CallExpression[callee.property.name='write'][callee.object.name='document']", message: "no" },
        { selector: "MemberExpression[object.name='localStorage'][property.name!=/Item$/]", message: "setItem" },
      ],
    },
  },
);
