"""What is asked of admission: which requests a configuration means, and what it is told of them.

Pure: rules, selectors, the AdmissionRequest document, match conditions. Who is asked (webhooks,
policies), where objects come from and how they are converted is not known here.
"""
