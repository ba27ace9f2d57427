/* The module: its functions and types are those of the other files. */

#include "text.h"

#define VERSION 10 /* as in __init__.py */

/* Fills the tables, which are the same in every interpreter, and adds the functions and types. */
static int execute(PyObject *module)
{
    PyMethodDef *functions[] = {english_functions,  line_rule_functions, lower_functions,
                                minhash_functions,  page_functions,      record_functions,
                                sentence_functions, span_functions,      word_statistics_functions};
    PyType_Spec *types[] = {&classifier_type, &lines_type, &words_type};
    learn_utf8();
    if (learn_lower() < 0 || PyModule_AddIntConstant(module, "VERSION", VERSION) < 0)
        return -1;
    for (size_t each = 0; each < sizeof functions / sizeof *functions; each++)
        if (PyModule_AddFunctions(module, functions[each]) < 0)
            return -1;
    for (size_t each = 0; each < sizeof types / sizeof *types; each++) {
        PyObject *type = PyType_FromModuleAndSpec(module, types[each], NULL);
        int failed = !type || PyModule_AddType(module, (PyTypeObject *)type) < 0;
        Py_XDECREF(type);
        if (failed)
            return -1;
    }
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "c4pipe.native._text",
    .m_doc = "Line rules, lower case, units, span hashes, n-grams and words, for bulk.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__text(void) { return PyModuleDef_Init(&definition); }
